-- SPDX-License-Identifier: GPL-2.0-or-later
-- One of the two functions of Split.hs; SplitA has its twin.
module SplitB (workB) where

-- | The given number of steps of a linear congruential generator. The loop is the function
-- itself, because GHC gives no symbol to a local one.
workB :: Int -> Word -> Word
workB 0 x = x
workB n x = workB (n - 1) (x * 6364136223846793005 + 1442695040888963407)
{-# NOINLINE workB #-}
