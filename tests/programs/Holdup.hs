-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE BangPatterns, ForeignFunctionInterface #-}
--
-- Holdup hold: on capability 1 a thread blocks for 500 ms in an unsafe call, now and then, while
-- a thread on capability 0 allocates, and so asks for a collection that cannot begin. Prints, as
-- holdup.c measured it, how long the unsafe calls lasted and how long the allocating thread stood
-- still because of them.
-- Holdup loop: the same, but it is a Haskell loop without allocation that does not stop.
-- Holdup clean: work, sleep, safe calls that sleep and short unsafe calls: nothing that should be
-- reported.
module Main (main) where

import Control.Concurrent
import Control.Exception
import Control.Monad
import Data.IORef
import Foreign.C.Types
import System.Environment

import Ready

foreign import ccall unsafe "holdup_take_lock" takeLock :: CInt -> IO ()
foreign import ccall unsafe "holdup_begin" holdBegin :: IO ()
foreign import ccall unsafe "holdup_end" holdEnd :: IO ()
foreign import ccall unsafe "holdup_tick" tick :: IO ()
foreign import ccall unsafe "holdup_checksum" checksum :: CInt -> IO CInt
foreign import ccall safe "holdup_query" query :: CInt -> IO CInt
foreign import ccall unsafe "holdup_print" printTally :: IO ()

-- About 100 kB of garbage.
allocate :: Int -> Int
allocate seed = sum [x * x `mod` 7 | x <- replicate 1500 seed]
{-# NOINLINE allocate #-}

allocateUntil :: IORef Bool -> Int -> IO ()
allocateUntil done !n = do
  _ <- evaluate (allocate n)
  tick
  end <- readIORef done
  unless end (allocateUntil done (n + 1))
{-# NOINLINE allocateUntil #-}

holdLock :: IO ()
holdLock = replicateM_ 2 (takeLock 500 >> threadDelay 100000)
{-# NOINLINE holdLock #-}

tightLoop :: Int -> Int -> Int
tightLoop 0 !x = x
tightLoop n !x = tightLoop (n - 1) (x * 31 + n)
{-# NOINLINE tightLoop #-}

runLoop :: IO ()
runLoop = forM_ [1, 2] $ \seed -> do
  holdBegin
  _ <- evaluate (tightLoop 400000000 seed)
  holdEnd
  threadDelay 100000
{-# NOINLINE runLoop #-}

work :: Int -> IO CInt
work n = do
  _ <- evaluate (sum [allocate (n + i) | i <- [1 .. 20]])
  c <- checksum (fromIntegral n)
  _ <- query 4
  threadDelay 2000
  pure c
{-# NOINLINE work #-}

against :: IO () -> MVar () -> IO ()
against holder finished = do
  done <- newIORef False
  _ <- forkOn 0 (allocateUntil done 0 >> putMVar finished ())
  _ <- forkOn 1 (threadDelay 50000 >> holder >> writeIORef done True)
  takeMVar finished

main :: IO ()
main = do
  [mode] <- getArgs
  waitForGo
  finished <- newEmptyMVar
  case mode of
    "hold" -> against holdLock finished
    "loop" -> against runLoop finished
    _ -> do
      _ <- forkIO (mapM_ work [1 .. 200] >> putMVar finished ())
      takeMVar finished
  printTally
