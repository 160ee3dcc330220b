-- SPDX-License-Identifier: GPL-2.0-or-later
-- One of the two functions of Split.hs; SplitB has its twin.
module SplitA (workA) where

-- | The given number of steps of a linear congruential generator. The loop is the function
-- itself, because GHC gives no symbol to a local one.
workA :: Int -> Word -> Word
workA 0 x = x
workA n x = workA (n - 1) (x * 6364136223846793005 + 1442695040888963407)
{-# NOINLINE workA #-}
