-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface, InterruptibleFFI #-}
--
-- Calls THREADS NAME=COUNT…: each of THREADS Haskell threads makes COUNT calls of each NAME, in
-- turn. The C functions count and time themselves (calls.c); when all threads are done the
-- totals are printed as one line of JSON.
module Main (main) where

import Control.Concurrent
import Control.Monad
import Data.Word
import Foreign.C.Types
import System.Environment
import System.Exit

import Ready

foreign import ccall safe "safe_spin_5us" safeSpin5us :: IO ()
foreign import ccall safe "safe_spin_20us" safeSpin20us :: IO ()
foreign import ccall safe "safe_spin_100us" safeSpin100us :: IO ()
foreign import ccall safe "safe_spin_1ms" safeSpin1ms :: IO ()
foreign import ccall safe "safe_spin_5ms" safeSpin5ms :: IO ()
foreign import ccall safe "safe_sleep_5us" safeSleep5us :: IO ()
foreign import ccall safe "safe_sleep_20us" safeSleep20us :: IO ()
foreign import ccall safe "safe_sleep_100us" safeSleep100us :: IO ()
foreign import ccall safe "safe_sleep_1ms" safeSleep1ms :: IO ()
foreign import ccall safe "safe_sleep_20ms" safeSleep20ms :: IO ()
foreign import ccall safe "safe_half_2ms" safeHalf2ms :: IO ()
foreign import ccall interruptible "interruptible_sleep_1ms" interruptibleSleep1ms :: IO ()
foreign import ccall unsafe "unsafe_spin_20us" unsafeSpin20us :: IO ()
foreign import ccall unsafe "unsafe_spin_1ms" unsafeSpin1ms :: IO ()
foreign import ccall unsafe "unsafe_sleep_1ms" unsafeSleep1ms :: IO ()
foreign import ccall unsafe "calls_clock" callsClock :: IO Word64
foreign import ccall unsafe "calls_outer" callsOuter :: CInt -> Word64 -> IO ()
foreign import ccall unsafe "calls_print" callsPrint :: IO ()

-- In the order of calls.c's enum.
functions :: [(String, IO ())]
functions = zipWith (\i (name, call) -> (name, timed i call)) [0 ..]
  [ ("safe_spin_5us", safeSpin5us)
  , ("safe_spin_20us", safeSpin20us)
  , ("safe_spin_100us", safeSpin100us)
  , ("safe_spin_1ms", safeSpin1ms)
  , ("safe_spin_5ms", safeSpin5ms)
  , ("safe_sleep_5us", safeSleep5us)
  , ("safe_sleep_20us", safeSleep20us)
  , ("safe_sleep_100us", safeSleep100us)
  , ("safe_sleep_1ms", safeSleep1ms)
  , ("safe_sleep_20ms", safeSleep20ms)
  , ("safe_half_2ms", safeHalf2ms)
  , ("interruptible_sleep_1ms", interruptibleSleep1ms)
  , ("unsafe_spin_20us", unsafeSpin20us)
  , ("unsafe_spin_1ms", unsafeSpin1ms)
  , ("unsafe_sleep_1ms", unsafeSleep1ms)
  ]

-- Times a call from outside: an upper bound of any time measured for it.
timed :: CInt -> IO () -> IO ()
timed which call = do
  start <- callsClock
  call
  end <- callsClock
  callsOuter which (end - start)

plan :: String -> Either String (IO ())
plan arg = case break (== '=') arg of
  (name, '=' : count)
    | Just call <- lookup name functions, [(n, "")] <- reads count ->
        Right (replicateM_ n call)
  _ -> Left arg

main :: IO ()
main = do
  args <- getArgs
  (threads, calls) <- case args of
    t : rest | [(n, "")] <- reads t, Right cs <- traverse plan rest -> pure (n :: Int, cs)
    _ -> die "usage: Calls THREADS NAME=COUNT..."
  waitForGo
  done <- forM [0 .. threads - 1] $ \i -> do
    v <- newEmptyMVar
    _ <- forkOn i (sequence_ calls >> putMVar v ())
    pure v
  mapM_ takeMVar done
  callsPrint
