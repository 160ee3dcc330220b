{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}
-- SPDX-License-Identifier: GPL-2.0-or-later
-- The twins of the functions in AllocA.hs.
module AllocB (buildB, listsB, bigB) where

import Control.Exception (evaluate)
import GHC.Exts
import GHC.IO (IO (..))

-- | A list of this many numbers, each boxed separately. The loop is the function itself, because
-- GHC gives no symbol to a local one.
buildB :: Int -> [Int] -> [Int]
buildB 0 l = l
buildB n l = buildB (n - 1) (n : l)
{-# NOINLINE buildB #-}

-- | Builds that list and takes its length.
listsB :: Int -> IO ()
listsB n = do
  l <- evaluate (buildB n [])
  _ <- evaluate (length l)
  pure ()
{-# NOINLINE listsB #-}

-- | This many arrays of this many bytes, each written to.
bigB :: Int -> Int -> IO Int
bigB 0 size = pure size
bigB n size@(I# bytes) = do
  IO (\s -> case newByteArray# bytes s of (# s1, a #) -> (# setByteArray# a 0# bytes 1# s1, () #))
  bigB (n - 1) size
{-# NOINLINE bigB #-}
