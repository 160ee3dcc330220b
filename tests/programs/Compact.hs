-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Compact SECONDS: has a compact region of many blocks, and waits for `go`; then for SECONDS makes nothing
-- but garbage, with a major collection every 0.7 s. Prints the region's size.
module Main where

import Control.Concurrent
import Control.Exception
import Control.Monad
import GHC.Compact
import System.Environment
import System.Mem

import Ready

data Pigeon = Pigeon !Int !Int

main :: IO ()
main = do
  [seconds] <- getArgs
  region <- compact [Pigeon i (2 * i) | i <- [1 .. 500000]]
  size <- compactSize region
  performMajorGC
  waitForGo
  forM_ [1 .. ceiling (read seconds / 0.7 :: Double) :: Int] $ \_ -> threadDelay 700000 >> performMajorGC
  _ <- evaluate (sum [b - a | Pigeon a b <- getCompact region])
  putStrLn ("{\"bytes\": " ++ show size ++ "}")
