-- SPDX-License-Identifier: GPL-2.0-or-later
-- A loop that Inlined.hs inlines.
module InlinedLoop (churn) where

churn :: Int -> Int -> Int
churn n x = go n x
  where
    go :: Int -> Int -> Int
    go 0 a = a
    go k a = go (k - 1) ((a * 1103515245 + 12345) `rem` 2147483647)
{-# INLINE churn #-}
