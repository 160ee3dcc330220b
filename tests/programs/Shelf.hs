-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Shelf SECONDS: works in code of many modules and packages, its own and those that come with GHC,
-- for the test that compares the modules of a stripped program with its twin's symbols.
module Main (main) where

import Control.Exception (evaluate)
import Control.Monad (when)
import qualified Data.ByteString.Char8 as B
import Data.Char (isSpace)
import qualified Data.IntMap.Strict as IM
import Data.List (sortOn)
import qualified Data.Map.Strict as M
import qualified Data.Sequence as S
import qualified Data.Text as T
import GHC.Clock (getMonotonicTimeNSec)
import System.Environment (getArgs)
import Text.Printf (printf)
import Text.Read (readMaybe)

import Ready (waitForGo)
import ShelfIndex (index)
import ShelfPlain (shuffled, titles)
import ShelfTypes (Book (..), Kind (..), worth)

-- In turn, so that samples are spread over the modules.
rounds :: Int -> IO Int
rounds n = do
  a <- evaluate (M.foldl' (+) 0 (index (map book (titles n))))
  b <- evaluate (T.length (T.unwords (map (T.toUpper . T.pack) (titles n))))
  c <- evaluate (sum (IM.elems (IM.fromListWith (+) [(x `mod` 97, x) | x <- shuffled n])))
  d <- evaluate (sum (S.sort (S.fromList (shuffled n))))
  e <- evaluate (length (B.words (B.pack (unwords (titles n)))))
  f <- evaluate (length (printf "%d of %s is %.2f" n (show d) (fromIntegral c :: Double) :: String))
  g <- evaluate (sum [x | Just x <- map (readMaybe . show) (shuffled n)])
  h <- evaluate (length (show (sortOn negate (map fromIntegral (shuffled n) :: [Integer]))))
  pure (a + b + c + d + e + f + g + h)

book :: String -> Book
book t = Book {title = t, kind = if any isSpace t then Novel (length t) else Poem, price = length t * 7}

main :: IO ()
main = do
  seconds <- read . head <$> getArgs
  waitForGo
  begin <- getMonotonicTimeNSec
  let go n total = do
        now <- getMonotonicTimeNSec
        if now - begin > seconds * 1000000000
          then pure total
          else rounds (200 + n `mod` 50) >>= go (n + 1) . (total +)
  total <- go 0 (0 :: Int)
  when (total == worth Poem) $ putStrLn "nothing"
