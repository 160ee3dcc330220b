-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Split SECONDS: SplitA.workA and SplitB.workB run the same loop, three times as many steps in
-- workA as in workB, in turn, until the time is up: 75 % and 25 % by construction. Prints
-- the steps that each made, and the program's CPU time, as one line of JSON.
--
-- Everything is exported: GHC gives other functions no symbol.
module Main where

import Control.Exception
import GHC.Clock
import System.CPUTime
import System.Environment

import Ready
import SplitA
import SplitB

steps :: Int
steps = 1000000

rounds :: Double -> Int -> Word -> IO (Int, Word)
rounds end n x = do
  a <- evaluate (workA (3 * steps) x)
  b <- evaluate (workB steps a)
  now <- getMonotonicTime
  if now >= end then pure (n + 1, b) else rounds end (n + 1) b
{-# NOINLINE rounds #-}

main :: IO ()
main = do
  [seconds] <- getArgs
  waitForGo
  start <- getMonotonicTime
  cpuStart <- getCPUTime
  (n, x) <- rounds (start + read seconds) 0 1
  cpu <- subtract cpuStart <$> getCPUTime
  putStrLn $ "{\"workA\": " ++ show (3 * steps * n) ++ ", \"workB\": " ++ show (steps * n)
    ++ ", \"cpu_ns\": " ++ show (cpu `div` 1000) ++ ", \"check\": \"" ++ show x ++ "\"}"
