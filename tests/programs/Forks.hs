-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface #-}
--
-- Forks MODE MILLISECONDS: a process that forks and goes on, and its child, which goes on too. Each
-- prints its own times, by its own clocks.
--
--   call     C code forks within a safe call, and the child stays in that call
--   process  by forkProcess: the child runs Haskell code in a runtime of its own
module Main (main) where

import Control.Concurrent
import Control.Exception
import Control.Monad
import Foreign.C.String
import Foreign.C.Types
import GHC.Clock
import System.Environment
import System.Exit
import System.Posix.Process

import Ready

foreign import ccall unsafe "forks_begin" forksBegin :: IO ()
foreign import ccall safe "forks_live" forksLive :: CInt -> IO CInt
foreign import ccall safe "forks_work" forksWork :: IO ()
foreign import ccall safe "forks_wait" forksWait :: CInt -> IO ()
foreign import ccall unsafe "forks_print" forksPrint :: CString -> IO ()

data Tree = Leaf | Node Tree !Int Tree

growTree :: Int -> Int -> Tree
growTree 0 _ = Leaf
growTree d n = Node (growTree (d - 1) (2 * n)) n (growTree (d - 1) (2 * n + 1))
{-# NOINLINE growTree #-}

foldTree :: Tree -> Int
foldTree Leaf = 0
foldTree (Node l n r) = foldTree l + n + foldTree r
{-# NOINLINE foldTree #-}

-- | Computes, makes safe calls that run and sleep, and waits for another thread.
live :: Int -> IO ()
live ms = do
  start <- getMonotonicTime
  let end = start + fromIntegral ms / 1000
      go = do
        void (evaluate (foldTree (growTree 12 1)))
        forksWork
        box <- newEmptyMVar
        _ <- forkIO (putMVar box $! foldTree (growTree 10 2))
        _ <- takeMVar box
        now <- getMonotonicTime
        when (now < end) go
  go
{-# NOINLINE live #-}

main :: IO ()
main = do
  args <- getArgs
  (mode, ms) <- case args of
    [m, a] | [(x, "")] <- reads a -> pure (m, x)
    _ -> die "usage: Forks MODE MILLISECONDS"
  waitForGo
  forksBegin
  child <- case mode of
    "call" -> forksLive (fromIntegral ms)
    "process" -> fromIntegral <$> forkProcess (forksBegin >> live ms >> withCString "child" forksPrint)
    _ -> die ("unknown mode " ++ mode)
  live ms
  forksWait child
  withCString "parent" forksPrint
