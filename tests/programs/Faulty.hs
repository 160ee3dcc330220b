-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE BangPatterns, ForeignFunctionInterface #-}
--
-- Faulty: a program whose faults are known, for the walk through the html page. On capability 0
-- `digest` uses the CPU, and `pile` allocates and so asks for collections. On capability 1 `rebuild` sleeps for
-- 150 ms in an unsafe call, six times: no collection can begin meanwhile, and `fetch`, whose safe calls of
-- 40 ms are made there, too, cannot get its capability back. Prints what faulty.c measured, and the bytes that the
-- thread of `digest` and `pile` allocated, by the runtime's own count.
module Main (digest, fetch, main, pile, rebuild) where

import Control.Concurrent
import Control.Exception
import Control.Monad
import Data.Int
import Data.IORef
import Foreign.C.Types
import System.Mem

import Ready

foreign import ccall unsafe "faulty_take_lock" takeLock :: CInt -> IO ()
foreign import ccall safe "faulty_query" query :: CInt -> IO ()
foreign import ccall unsafe "faulty_print" printTally :: Int64 -> IO ()

digest :: Int -> Int -> Int
digest !sum' 0 = sum'
digest sum' n = digest (sum' + n * n `mod` 7) (n - 1)
{-# NOINLINE digest #-}

-- 24 bytes for each of these elements, and 16 for most of the numbers in them.
pile :: [Int] -> Int -> [Int]
pile done 0 = done
pile done n = pile (n : done) (n - 1)
{-# NOINLINE pile #-}

digestUntil :: IORef Bool -> Int -> IO ()
digestUntil done !n = do
  _ <- evaluate (digest n 20000)
  _ <- evaluate (pile [] (2500 + n `mod` 7))
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
  allocated <- newIORef 0
  _ <- forkOn 0 $ do
    before <- getAllocationCounter
    digestUntil done 0
    after <- getAllocationCounter
    writeIORef allocated (before - after)
    putMVar finished ()
  _ <- forkOn 1 (fetch done >> putMVar finished ())
  _ <- forkOn 1 (rebuild done 6 >> putMVar finished ())
  replicateM_ 3 (takeMVar finished)
  readIORef allocated >>= printTally
