-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface #-}
--
-- Brief THREADS: this many OS threads, each with a Haskell thread that is bound to it and sleeps in safe calls. At the
-- next line of input they all end, and at the one after that the program ends.
module Main (main) where

import Control.Concurrent
import Control.Monad
import Data.IORef
import Foreign.C
import System.Environment
import System.IO

import Ready

foreign import ccall safe "usleep" cSleep :: CUInt -> IO CInt

sleepUntil :: IORef Bool -> IO ()
sleepUntil end = do
  _ <- cSleep 20000
  over <- readIORef end
  unless over (sleepUntil end)

main :: IO ()
main = do
  [n] <- map read <$> getArgs
  waitForGo
  end <- newIORef False
  done <- newEmptyMVar
  replicateM_ n (forkOS (sleepUntil end >> putMVar done ()))
  _ <- getLine
  writeIORef end True
  replicateM_ n (takeMVar done)
  putStrLn "over"
  hFlush stdout
  void getLine
