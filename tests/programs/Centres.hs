-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Centres SECONDS: cost centres with known shares. With -fprof-auto-top:
--
--   rounds > heavy  > churn   three parts of the work
--          > middle > churn   two parts
--          > light            one part
--          > local scc "inner"
module Main where

import Control.Exception
import GHC.Clock
import System.Environment

import Ready

-- Loops over unboxed numbers, and lists that are consumed as they are made: stacks stay flat, so
-- that a sample takes the same time everywhere and does not slow down what it samples.
collatz :: Int -> Int -> Int
collatz 1 acc = acc
collatz n acc = collatz (if even n then n `quot` 2 else 3 * n + 1) (acc + 1)
-- Being recursive, it is not inlined; but because of the pragma it gets no cost centre of its own.
{-# INLINE collatz #-}

churn :: Int -> Int -> Int
churn k n = length (filter even (map (\x -> collatz x k) [1 .. n]))
{-# NOINLINE churn #-}

heavy :: Int -> IO Int
heavy k = evaluate (churn k 1500)
{-# NOINLINE heavy #-}

middle :: Int -> IO Int
middle k = do
  a <- evaluate (churn (k + 1) 600)
  b <- evaluate (length (filter odd (map (`collatz` 0) [1 + k `mod` 3 .. 800])))
  pure $! a + b
{-# NOINLINE middle #-}

light :: Int -> IO Int
light k = evaluate (length (takeWhile (< 12000) (iterate (+ (1 + k `mod` 2)) 1)))
{-# NOINLINE light #-}

rounds :: Double -> Int -> IO Int
rounds end n = do
  now <- getMonotonicTime
  if now >= end
    then pure n
    else do
      a <- heavy n
      b <- middle n
      c <- light n
      d <- {-# SCC "inner" #-} evaluate (length (filter even (map (`collatz` n) [1 .. 500])))
      rounds end $! n + 1 + (a + b + c + d) `mod` 1
{-# NOINLINE rounds #-}

main :: IO ()
main = do
  seconds <- read . unwords <$> getArgs
  waitForGo
  start <- getMonotonicTime
  n <- rounds (start + seconds) 0
  putStrLn ("{\"rounds\": " ++ show n ++ "}")
