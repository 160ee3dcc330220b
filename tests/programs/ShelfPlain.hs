-- SPDX-License-Identifier: GPL-2.0-or-later
-- A module without constructors.
module ShelfPlain where

titles :: Int -> [String]
titles n = [words' x | x <- shuffled n]
{-# NOINLINE titles #-}

words' :: Int -> String
words' x = if even x then show x else "the " ++ show x ++ " of " ++ reverse (show x)
{-# NOINLINE words' #-}

shuffled :: Int -> [Int]
shuffled n = take n (iterate (\x -> (x * 7919 + 13) `mod` 10007) n)
{-# NOINLINE shuffled #-}
