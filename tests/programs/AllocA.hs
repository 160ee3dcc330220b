{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}
-- SPDX-License-Identifier: GPL-2.0-or-later
-- Two of the functions of Alloc.hs that allocate; AllocB has their twins.
module AllocA (buildA, listsA, bigA) where

import Control.Exception (evaluate)
import GHC.Exts
import GHC.IO (IO (..))

-- | A list of this many numbers, each boxed separately. The loop is the function itself, because
-- GHC gives no symbol to a local one.
buildA :: Int -> [Int] -> [Int]
buildA 0 l = l
buildA n l = buildA (n - 1) (n : l)
{-# NOINLINE buildA #-}

-- | Builds that list and takes its length.
listsA :: Int -> IO ()
listsA n = do
  l <- evaluate (buildA n [])
  _ <- evaluate (length l)
  pure ()
{-# NOINLINE listsA #-}

-- | This many arrays of this many bytes, each written to.
bigA :: Int -> Int -> IO Int
bigA 0 size = pure size
bigA n size@(I# bytes) = do
  IO (\s -> case newByteArray# bytes s of (# s1, a #) -> (# setByteArray# a 0# bytes 1# s1, () #))
  bigA (n - 1) size
{-# NOINLINE bigA #-}
