-- SPDX-License-Identifier: GPL-2.0-or-later
-- A module with constructors.
module ShelfTypes where

data Kind = Novel Int | Poem | Atlas [Int]
  deriving (Eq, Ord, Show)

data Book = Book {title :: String, kind :: Kind, price :: Int}
  deriving (Eq, Ord, Show)

worth :: Kind -> Int
worth (Novel n) = n
worth Poem = -1
worth (Atlas ns) = sum ns
{-# NOINLINE worth #-}
