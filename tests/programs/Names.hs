-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Names SECONDS: a call tree over three modules, of which no function is inlined:
--
--   Main.rounds > NamesA.alpha > NamesA.beta > NamesB.gamma
--                              > NamesB.gamma
--               > NamesB.delta > names::spin(int), in C++
--                              > NamesB.gamma
--               > NamesA.lazy, a thunk `chain` of which > NamesB.build
--
-- No call is a tail call except the thunk's, which only its update frame shows.
module Main where

import GHC.Clock
import System.Environment

import NamesA
import NamesB
import Ready

rounds :: Double -> Int -> IO Int
rounds end n = do
  let x = alpha n
      y = delta x
      z = lazy y
  now <- x `seq` y `seq` z `seq` getMonotonicTime
  if now >= end
    then pure (x + y + z)
    else do
      r <- rounds end (n + 1)
      pure $! r + 1
{-# NOINLINE rounds #-}

-- In pieces of 20 ms, since the stack of `rounds` would grow without end.
main :: IO ()
main = do
  [seconds] <- getArgs
  waitForGo
  start <- getMonotonicTime
  let end = start + read seconds
      again total = do
        now <- getMonotonicTime
        x <- rounds (min end (now + 0.02)) 1
        if now >= end then pure (total + x) else again $! total + x
  total <- again (0 :: Int)
  putStrLn ("{\"total\": " ++ show total ++ "}")
