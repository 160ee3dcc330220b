-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface #-}
--
-- Alloc MODE SECONDS [FACTOR]: functions of AllocA and AllocB allocate, in turn, until the time is
-- up.
--
--   split  lists, three times as many elements in A as in B
--   rounds longer lists, FACTOR times as many elements in A as in B, and a safe call of getppid after
--          every two of them; the number of calls is printed, too
--   large  large objects only, three times as many in A; with -A3m there is a collection after every
--          63 of them, each time at another one of the four
--   mixed  large objects in A, lists in B, as many bytes of each
--   caps   each capability has a thread: the first one's builds lists in A, the others' in B, and
--          the others do so much else that they never fill a nursery first
--   leak   FACTOR bytes a second are kept, in cells of six words, among garbage, with a major
--          collection every half second, while 300 threads wait
--
-- Prints the bytes that each has allocated, by the runtime's own counter for the thread, as one line of
-- JSON; for a leak, the bytes that are kept, when it began by the monotonic clock, and the seconds.
module Main where

import Control.Concurrent
import Control.Exception
import Control.Monad
import Data.Int
import Data.IORef
import Foreign.C.Types
import GHC.Clock
import System.Environment
import System.Mem

import AllocA
import AllocB
import Ready
import SplitA

foreign import ccall safe "getppid" roundIsOver :: IO CInt

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

-- | Runs each on its own capability; returns what they have allocated, in A and in B.
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

-- | Two words and a header: six words together with the list's cell.
data Kept = Kept !Int !Int

keep :: Int -> [Kept] -> [Kept]
keep 0 l = l
keep n l = keep (n - 1) (Kept n n : l)
{-# NOINLINE keep #-}

-- | Keeps cells until the time is up; returns how many.
leak :: IORef [Kept] -> Double -> Double -> Double -> IO Int
leak ref rate start end = go 0 (start + 0.5)
  where
    go kept next = do
      now <- getMonotonicTime
      let want = floor ((now - start) * rate / 48)
      l <- readIORef ref
      evaluate (keep (want - kept) l) >>= writeIORef ref
      listsB 10000
      when (now >= next) performMajorGC
      if now >= end then pure want else go want (if now >= next then next + 0.5 else next)

leaking :: Double -> Double -> Double -> IO ()
leaking rate start end = do
  gate <- newEmptyMVar
  replicateM_ 300 (forkIO (takeMVar gate))
  ref <- newIORef []
  kept <- leak ref rate start end
  now <- getMonotonicTime
  n <- length <$> readIORef ref
  replicateM_ 300 (putMVar gate ())
  putStrLn $ "{\"kept\": " ++ show (48 * min n kept) ++ ", \"start\": " ++ show start ++
    ", \"seconds\": " ++ show (now - start) ++ "}"

-- | What A and B have allocated at the end, and the number of rounds.
turns :: String -> Double -> Int -> IO ((Int64, Int64), Int)
turns mode end factor = do
  done <- newIORef 0
  bytes <- case mode of
    "split" -> one end (listsA 3000) (listsB 1000)
    "rounds" -> one end (listsA (10000 * factor)) $ do
      listsB 10000
      _ <- roundIsOver
      modifyIORef' done (+ 1)
    "large" -> one end (void (bigA 3 50000)) (void (bigB 1 50000))
    "mixed" -> one end (void (bigA 1 65536)) (listsB 1640)
    "caps" -> onCaps end
    _ -> fail "Alloc split|rounds|large|mixed|caps|leak SECONDS [FACTOR]"
  (,) bytes <$> readIORef done

main :: IO ()
main = do
  mode : seconds : more <- getArgs
  waitForGo
  start <- getMonotonicTime
  let end = start + read seconds
      factor = read (concat more)
  if mode == "leak" then leaking (fromIntegral factor) start end else do
    ((a, b), rounds) <- turns mode end factor
    putStrLn $ "{\"a\": " ++ show a ++ ", \"b\": " ++ show b ++ ", \"rounds\": " ++ show rounds ++ "}"
