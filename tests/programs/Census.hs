-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Census SECONDS [train]: builds a heap of maps, lists, thunks, byte strings and arrays, with some thunks evaluated
-- when they are old; then waits for `go`, and for SECONDS makes nothing but garbage, with a major
-- collection every 0.7 s. train: ten major collections, 20 ms apart, and then nothing for SECONDS.
module Main where

import Control.Concurrent
import Control.Exception
import Control.Monad
import qualified Data.ByteString.Char8 as B
import Data.IORef
import Data.List (foldl')
import qualified Data.IntMap.Lazy as IM
import qualified Data.Map.Strict as M
import GHC.Clock
import System.Environment
import System.Mem

import Ready

data Shape = Circle !Double | Rect !Double !Double | Named String Shape

shape :: Int -> Shape
shape n
  | n `mod` 3 == 0 = Circle (fromIntegral n)
  | n `mod` 3 == 1 = Rect (fromIntegral n) 2
  | otherwise = Named (show n) (Circle 1)

width :: Shape -> Int
width (Circle r) = round r
width (Rect w _) = round w
width (Named s x) = length s + width x

garbage :: Int -> Int
garbage n = foldl' (+) 0 (map (`div` 3) [1 .. n])
{-# NOINLINE garbage #-}

work :: Double -> Double -> Int -> IO Int
work end major x = do
  y <- evaluate (garbage (x `mod` 2 + 100000))
  now <- getMonotonicTime
  if now >= end then pure y else
    if now < major then work end major y else performMajorGC >> work end (now + 0.7) y

main :: IO ()
main = do
  seconds : how <- getArgs
  let shapes = M.fromList [(i, shape i) | i <- [1 .. 200000 :: Int]]
      lazy = IM.fromList [(i, product [1 .. fromIntegral i `mod` 7 :: Integer]) | i <- [1 .. 100000]]
      bytes = [B.pack (show i) | i <- [1 .. 50000 :: Int]]
      big = B.replicate 1000000 'x'
  _ <- evaluate (M.foldl' (\a s -> a + width s) 0 shapes)
  _ <- evaluate (IM.size lazy + sum (map B.length bytes) + B.length big)
  vars <- mapM newMVar [1 .. 2000 :: Int]
  refs <- mapM newIORef [1 .. 5000 :: Int]
  performMajorGC
  performMajorGC
  _ <- evaluate (sum [v | (k, v) <- IM.toList lazy, even k])
  waitForGo
  start <- getMonotonicTime
  x <- if how == ["train"]
    then 1 <$ (replicateM_ 10 (performMajorGC >> threadDelay 20000) >> threadDelay (round (1e6 * read seconds :: Double)))
    else work (start + read seconds) 0 1
  kept <- (,) <$> mapM readMVar vars <*> mapM readIORef refs
  putStrLn $ "{\"check\": " ++ show (x + M.size shapes + IM.size lazy + length bytes + B.length big + sum (fst kept)
    + sum (snd kept)) ++ "}"
