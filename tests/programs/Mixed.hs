-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Mixed MODE SECONDS: stacks of Haskell and C code in which every frame is known; see mixed.c.
--
--   unsafe    mixLoop calls mix_outer unsafely: mix_outer > mix_middle > mix_inner
--   safe      the same by a safe call
--   sort      an unsafe call of mix_sort: libc's qsort > mix_compare
--   callback  a safe call: mix_call > mix_call_more > Haskell's mixBack > unsafe mix_outer
--   signal    an unsafe call in which a signal handler runs: mix_raise > … > mix_handler
--   many      an unsafe call with ten arguments on the stack: mix_many > mix_outer
--   leaf      an unsafe call: mix_leaf > mix_spin, which is in assembler and has no unwind rows
--   thread    a thread that C created, without Haskell: mix_thread > mix_outer
--
-- Everything is exported: GHC gives other functions no symbol.
module Main where

import Control.Monad
import Foreign.C.Types
import GHC.Clock
import System.Environment
import System.Exit

import Ready

foreign import ccall unsafe "mix_outer" mixOuter :: CInt -> IO CInt
foreign import ccall safe "mix_outer" mixOuterSafe :: CInt -> IO CInt
foreign import ccall unsafe "mix_sort" mixSort :: CInt -> IO CInt
foreign import ccall safe "mix_call" mixCall :: CInt -> IO CInt
foreign import ccall unsafe "mix_raise" mixRaise :: CInt -> IO CInt
foreign import ccall unsafe "mix_leaf" mixLeaf :: CInt -> IO CInt
foreign import ccall unsafe "mix_many"
  mixMany16 :: CInt -> CInt -> CInt -> CInt -> CInt -> CInt -> CInt -> CInt -> CInt -> CInt -> CInt -> CInt
            -> CInt -> CInt -> CInt -> CInt -> IO CInt
foreign import ccall safe "mix_start" mixStart :: CInt -> IO CInt

foreign export ccall mixBack :: CInt -> IO CInt

mixBack :: CInt -> IO CInt
mixBack n = do
  x <- mixOuter n
  pure $! x + 1
{-# NOINLINE mixBack #-}

mixMany :: CInt -> IO CInt
mixMany n = mixMany16 n 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16

mixLoop :: (CInt -> IO CInt) -> Double -> CInt -> IO CInt
mixLoop f end n = do
  x <- f n
  now <- getMonotonicTime
  if now >= end then pure x else mixLoop f end (x + n)
{-# NOINLINE mixLoop #-}

main :: IO ()
main = do
  [mode, seconds] <- getArgs
  f <- case mode of
    "unsafe" -> pure mixOuter
    "safe" -> pure mixOuterSafe
    "sort" -> pure mixSort
    "callback" -> pure mixCall
    "signal" -> pure mixRaise
    "many" -> pure mixMany
    "leaf" -> pure mixLeaf
    "thread" -> pure mixStart
    _ -> die ("unknown mode " ++ mode)
  waitForGo
  start <- getMonotonicTime
  x <- mixLoop f (start + read seconds) 1
  when (x == 0) (die "cannot be")
  putStrLn "{}"
