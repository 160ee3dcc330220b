-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Inlined SECONDS: nearly all time is in a loop that is inlined from another module. GHC floats it to the top level
-- and calls it "$wgo"; an info table map has no place for it, DWARF has.
module Main (main) where

import GHC.Clock
import System.Environment

import InlinedLoop
import Ready

first, second :: Int -> Int
first n = churn 40000 n
{-# NOINLINE first #-}
second n = churn 30000 (n + 1)
{-# NOINLINE second #-}

rounds :: Double -> Int -> IO Int
rounds end n = do
  let x = first n
      y = second x
  now <- x `seq` y `seq` getMonotonicTime
  if now >= end then pure y else rounds end (y + 1)

main :: IO ()
main = do
  [seconds] <- getArgs
  waitForGo
  start <- getMonotonicTime
  total <- rounds (start + read seconds) 1
  putStrLn ("{\"total\": " ++ show total ++ "}")
