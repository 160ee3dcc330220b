-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE BangPatterns, ForeignFunctionInterface #-}
--
-- Faulty: a program whose faults are known, for the walk through the html page. On capability 0
-- `digest` uses the CPU and allocates, and so asks for collections. On capability 1 `rebuild` sleeps for
-- 150 ms in an unsafe call, six times: no collection can begin meanwhile, and `fetch`, whose safe calls of
-- 40 ms belong there, too, cannot get its capability back. Prints what faulty.c measured.
module Main (digest, fetch, main, rebuild) where

import Control.Concurrent
import Control.Exception
import Control.Monad
import Data.IORef
import Foreign.C.Types

import Ready

foreign import ccall unsafe "faulty_take_lock" takeLock :: CInt -> IO ()
foreign import ccall safe "faulty_query" query :: CInt -> IO ()
foreign import ccall unsafe "faulty_print" printTally :: IO ()

-- About 100 kB of garbage.
digest :: Int -> Int
digest seed = sum [x * x `mod` 7 | x <- replicate 1500 seed]
{-# NOINLINE digest #-}

digestUntil :: IORef Bool -> Int -> IO ()
digestUntil done !n = do
  _ <- evaluate (digest n)
  end <- readIORef done
  unless end (digestUntil done (n + 1))
{-# NOINLINE digestUntil #-}

rebuild :: IORef Bool -> Int -> IO ()
rebuild done 0 = writeIORef done True
rebuild done n = takeLock 150 >> threadDelay 100000 >> rebuild done (n - 1)
{-# NOINLINE rebuild #-}

fetch :: IORef Bool -> IO ()
fetch done = do
  query 40
  end <- readIORef done
  unless end (fetch done)
{-# NOINLINE fetch #-}

main :: IO ()
main = do
  waitForGo
  done <- newIORef False
  finished <- newEmptyMVar
  _ <- forkOn 0 (digestUntil done 0 >> putMVar finished ())
  _ <- forkOn 1 (fetch done >> putMVar finished ())
  _ <- forkOn 1 (rebuild done 6 >> putMVar finished ())
  replicateM_ 3 (takeMVar finished)
  printTally
