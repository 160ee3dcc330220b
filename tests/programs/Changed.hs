-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE CPP, ForeignFunctionInterface #-}
--
-- Changed CPU_SECONDS: rounds of the same work until the program has used that much CPU time. Each has
-- six functions of one unit each, one of two units, and a safe call that sleeps for 300 µs. Built with SLOWER,
-- the last function does four units and the call sleeps for 900 µs. Prints, as one line of JSON, the rounds,
-- and the CPU time of the changed function and of all others, by the process's clock.
--
-- Everything is exported: GHC gives other functions no symbol.
module Main where

import Control.Exception
import Foreign.C.Types
import System.CPUTime
import System.Environment

import Ready

foreign import ccall safe "changed_fetch" changedFetch :: CInt -> IO ()

unit, changedUnits :: Int
fetchUs :: CInt
unit = 200000
#ifdef SLOWER
changedUnits = 4
fetchUs = 900
#else
changedUnits = 2
fetchUs = 300
#endif

-- GHC would merge equal functions.
steady1, steady2, steady3, steady4, steady5, steady6, changed :: Int -> Word -> Word
steady1 0 x = x
steady1 n x = steady1 (n - 1) (x * 6364136223846793005 + 1)
{-# NOINLINE steady1 #-}
steady2 0 x = x
steady2 n x = steady2 (n - 1) (x * 6364136223846793005 + 2)
{-# NOINLINE steady2 #-}
steady3 0 x = x
steady3 n x = steady3 (n - 1) (x * 6364136223846793005 + 3)
{-# NOINLINE steady3 #-}
steady4 0 x = x
steady4 n x = steady4 (n - 1) (x * 6364136223846793005 + 4)
{-# NOINLINE steady4 #-}
steady5 0 x = x
steady5 n x = steady5 (n - 1) (x * 6364136223846793005 + 5)
{-# NOINLINE steady5 #-}
steady6 0 x = x
steady6 n x = steady6 (n - 1) (x * 6364136223846793005 + 6)
{-# NOINLINE steady6 #-}
changed 0 x = x
changed n x = changed (n - 1) (x * 6364136223846793005 + 7)
{-# NOINLINE changed #-}

data Sums = Sums !Int !Integer !Integer

rounds :: Integer -> Sums -> Word -> IO (Sums, Word)
rounds end (Sums n took others) x = do
  start <- getCPUTime
  y <- evaluate (changed (changedUnits * unit) x)
  between <- getCPUTime
  z <- evaluate (foldl (\w f -> f unit w) y [steady1, steady2, steady3, steady4, steady5, steady6])
  now <- getCPUTime
  changedFetch fetchUs
  let sums = Sums (n + 1) (took + between - start) (others + now - between)
  if now >= end then pure (sums, z) else rounds end sums z
{-# NOINLINE rounds #-}

main :: IO ()
main = do
  [seconds] <- getArgs
  waitForGo
  start <- getCPUTime
  (Sums n took others, x) <- rounds (start + round (read seconds * 1e12 :: Double)) (Sums 0 0 0) 1
  putStrLn $ "{\"rounds\": " ++ show n ++ ", \"changed_ns\": " ++ show (took `div` 1000)
    ++ ", \"steady_ns\": " ++ show (others `div` 1000) ++ ", \"check\": \"" ++ show x ++ "\"}"
