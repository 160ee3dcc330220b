-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Alloc MODE SECONDS: functions of AllocA and AllocB allocate, turn by turn, until the time is up.
--
--   split  lists, three times as many elements in A as in B
--   large  large objects only, three times as many in A; with -A3m a collection comes after 63 of
--          them, each time at another one of the four
--   mixed  large objects in A, lists in B, as many bytes of each
--   caps   each capability has a thread: the first one's builds lists in A, the others' in B, and
--          these do so much else meanwhile that they never fill a nursery first
--
-- Prints the bytes that each has allocated by the runtime's own counter for the thread, as one line
-- of JSON.
module Main where

import Control.Concurrent
import Control.Exception
import Control.Monad
import Data.Int
import GHC.Clock
import System.Environment
import System.Mem

import AllocA
import AllocB
import Ready
import SplitA

until' :: Double -> IO (Int64, Int64) -> (Int64, Int64) -> IO (Int64, Int64)
until' end act (a, b) = do
  (x, y) <- act
  now <- getMonotonicTime
  let a' = a + x
      b' = b + y
  if now >= end then pure (a', b') else a' `seq` b' `seq` until' end act (a', b')

one :: Double -> IO () -> IO () -> IO (Int64, Int64)
one end a b = until' end ((,) <$> allocates a <*> allocates b) (0, 0)

-- | The counter counts down.
allocates :: IO () -> IO Int64
allocates act = do
  before <- getAllocationCounter
  act
  after <- getAllocationCounter
  pure (before - after)

-- | Each on its own capability; what they have allocated, in A and in B.
onCaps :: Double -> IO (Int64, Int64)
onCaps end = do
  n <- getNumCapabilities
  results <- forM [0 .. n - 1] $ \i -> do
    result <- newEmptyMVar
    _ <- forkOn i $ do
      let act | i == 0 = (,) <$> allocates (listsA 1000) <*> pure 0
              | otherwise = do
                  _ <- evaluate (workA 20000 1)
                  (,) 0 <$> allocates (listsB 1000)
      until' end act (0, 0) >>= putMVar result
    pure result
  all' <- mapM takeMVar results
  pure (sum (map fst all'), sum (map snd all'))

main :: IO ()
main = do
  [mode, seconds] <- getArgs
  waitForGo
  start <- getMonotonicTime
  let end = start + read seconds
  (a, b) <- case mode of
    "split" -> one end (listsA 3000) (listsB 1000)
    "large" -> one end (void (bigA 3 50000)) (void (bigB 1 50000))
    "mixed" -> one end (void (bigA 1 65536)) (listsB 1640)
    "caps" -> onCaps end
    _ -> fail "Alloc split|large|mixed|caps SECONDS"
  putStrLn $ "{\"a\": " ++ show a ++ ", \"b\": " ++ show b ++ "}"
