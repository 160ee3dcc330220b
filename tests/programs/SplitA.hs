-- SPDX-License-Identifier: GPL-2.0-or-later
-- One of the two functions of Split.hs; SplitB has its twin.
module SplitA (workA) where

-- | As many steps of a linear congruential generator as asked for.
workA :: Int -> Word -> Word
workA n x0 = go n x0
  where
    go :: Int -> Word -> Word
    go 0 x = x
    go k x = go (k - 1) (x * 6364136223846793005 + 1442695040888963407)
{-# NOINLINE workA #-}
