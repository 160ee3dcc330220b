-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE BangPatterns, ForeignFunctionInterface #-}
--
-- NullCall ROUNDS [CALLS]: what a safe call costs compared with an unsafe one, of a C function that
-- does nothing: the least CPU time of ROUNDS rounds of 100000 calls each. With CALLS it then prints
-- "ready", waits for "go", and makes that many safe calls. Prints one line of JSON.
-- scripts/bench-safe-call runs it.
module Main (main) where

import Control.Monad
import Data.Word
import Foreign.C.Types
import System.Environment
import Text.Printf

import Ready

foreign import ccall safe "null_call" safeNull :: CInt -> IO CInt
foreign import ccall unsafe "null_call" unsafeNull :: CInt -> IO CInt
foreign import ccall unsafe "null_clock" nullClock :: IO Word64

callSafe :: Int -> CInt -> IO CInt
callSafe 0 !x = pure x
callSafe n !x = safeNull x >>= callSafe (n - 1)
{-# NOINLINE callSafe #-}

callUnsafe :: Int -> CInt -> IO CInt
callUnsafe 0 !x = pure x
callUnsafe n !x = unsafeNull x >>= callUnsafe (n - 1)
{-# NOINLINE callUnsafe #-}

perRound :: Int
perRound = 100000

timed :: IO a -> IO Double
timed act = do
  start <- nullClock
  _ <- act
  end <- nullClock
  pure (fromIntegral (end - start) / fromIntegral perRound)

main :: IO ()
main = do
  args <- map read <$> getArgs
  rounds <- replicateM (head args) $ do
    s <- timed (callSafe perRound 0)
    u <- timed (callUnsafe perRound 0)
    pure (s, u)
  forM_ (tail args) $ \calls -> waitForGo >> callSafe calls 0
  printf "{\"safe_ns\": %.1f, \"unsafe_ns\": %.1f}\n" (minimum (map fst rounds)) (minimum (map snd rounds))
