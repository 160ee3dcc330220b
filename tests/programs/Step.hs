-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface #-}
--
-- Step ROUNDS: whenever the monotonic clock reaches a multiple of 2 ms, two functions run, one after
-- the other, for about 0.35 ms each. Prints, as one line of JSON, how much CPU time each of them took, by the
-- process's clock.
--
-- Everything is exported: GHC gives other functions no symbol.
module Main where

import Control.Exception
import Foreign.C.Types
import System.CPUTime
import System.Environment

import Ready

foreign import ccall safe "step_wait" stepWait :: CLong -> IO ()

early, late :: Int -> Word -> Word
early 0 x = x
early n x = early (n - 1) (x * 6364136223846793005 + 1)
{-# NOINLINE early #-}
late 0 x = x
late n x = late (n - 1) (x * 6364136223846793005 + 2)
{-# NOINLINE late #-}

data Sums = Sums !Integer !Integer

rounds :: Int -> Sums -> Word -> IO (Sums, Word)
rounds 0 sums x = pure (sums, x)
rounds n (Sums first second) x = do
  stepWait 2000000
  start <- getCPUTime
  y <- evaluate (early 400000 x)
  between <- getCPUTime
  z <- evaluate (late 400000 y)
  now <- getCPUTime
  rounds (n - 1) (Sums (first + between - start) (second + now - between)) z
{-# NOINLINE rounds #-}

main :: IO ()
main = do
  [n] <- getArgs
  waitForGo
  (Sums first second, x) <- rounds (read n) (Sums 0 0) 1
  putStrLn $ "{\"early_ns\": " ++ show (first `div` 1000) ++ ", \"late_ns\": " ++ show (second `div` 1000)
    ++ ", \"check\": \"" ++ show x ++ "\"}"
