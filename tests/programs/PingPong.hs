-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- PingPong bound|unbound ROUNDS: two Haskell threads hand a token to each other ROUNDS times. Bound:
-- one of them is the main thread, which is bound to its OS thread, so that each hand-over is a
-- switch of OS threads too. Prints one line of JSON: the wall time of a round.
module Main (main) where

import Control.Concurrent
import Control.Monad
import GHC.Clock
import System.Environment

import Ready

rounds :: Int -> MVar () -> MVar () -> IO ()
rounds n here there = replicateM_ n (putMVar there () >> takeMVar here)
{-# NOINLINE rounds #-}

main :: IO ()
main = do
  [mode, count] <- getArgs
  waitForGo
  let n = read count
  a <- newEmptyMVar
  b <- newEmptyMVar
  done <- newEmptyMVar
  start <- getMonotonicTimeNSec
  _ <- forkIO (replicateM_ n (takeMVar b >> putMVar a ()))
  if mode == "bound"
    then rounds n a b
    else forkIO (rounds n a b >> putMVar done ()) >> takeMVar done
  end <- getMonotonicTimeNSec
  putStrLn ("{\"round_ns\": " ++ show (fromIntegral (end - start) / fromIntegral n :: Double) ++ "}")
