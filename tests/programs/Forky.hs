-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface #-}
--
-- Forky MODE COUNT: COUNT safe calls, each of which forks a child in C and waits for it; then
--
--   fork   prints the totals and ends
--   exec   makes 2000 short safe calls and, while three others sleep in theirs, replaces itself, within a safe call, by a
--          program that is not Haskell
--   shell  replaces itself by a shell, which is replaced by the command in FORKY_NEXT
--   self   replaces itself by itself, in mode fork
--   crash  dies by SIGSEGV within a safe call
module Main (main) where

import Control.Concurrent
import Control.Monad
import System.Environment
import System.Exit

import Ready

foreign import ccall safe "forky_fork_1ms" forkyFork :: IO ()
foreign import ccall safe "forky_short" forkyShort :: IO ()
foreign import ccall safe "forky_sleep" forkySleep :: IO ()
foreign import ccall safe "forky_exec" forkyExec :: IO ()
foreign import ccall safe "forky_exec_shell" forkyExecShell :: IO ()
foreign import ccall safe "forky_exec_self" forkyExecSelf :: IO ()
foreign import ccall safe "forky_crash" forkyCrash :: IO ()
foreign import ccall unsafe "forky_print" forkyPrint :: IO ()

main :: IO ()
main = do
  args <- getArgs
  (mode, n) <- case args of
    [m, a] | [(x, "")] <- reads a -> pure (m, x)
    _ -> die "usage: Forky MODE COUNT"
  waitForGo
  replicateM_ n forkyFork
  case mode of
    "fork" -> forkyPrint
    "exec" -> do
      replicateM_ 2000 forkyShort
      replicateM_ 3 (forkIO forkySleep)
      threadDelay 500000
      forkyExec
    "shell" -> forkyExecShell
    "self" -> forkyExecSelf
    "crash" -> forkyCrash
    _ -> die ("unknown mode " ++ mode)
