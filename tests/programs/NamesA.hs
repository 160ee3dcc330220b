-- SPDX-License-Identifier: GPL-2.0-or-later
-- Functions of the call tree of Names.hs.
module NamesA (alpha, beta, lazy) where

import NamesB

alpha :: Int -> Int
alpha n =
  case beta n of
    b -> case gamma (n + b) of
      g -> b + g
{-# NOINLINE alpha #-}

beta :: Int -> Int
beta n =
  case gamma (n * 2) of
    g -> g + 1
{-# NOINLINE beta #-}

-- The thunk enters build and leaves no frame of its own.
lazy :: Int -> Int
lazy n =
  case total (pick n chain) 0 of
    t -> t + n
  where
    chain = build (n `rem` 100 + 3000)
{-# NOINLINE lazy #-}

pick :: Int -> [Int] -> Maybe [Int]
pick n xs = if n == 123456789 then Nothing else Just xs
{-# NOINLINE pick #-}

total :: Maybe [Int] -> Int -> Int
total Nothing acc = acc
total (Just []) acc = acc
total (Just (x : xs)) acc = total (Just xs) $! acc + x
{-# NOINLINE total #-}
