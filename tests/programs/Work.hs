-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Work MODE SECONDS: Haskell code of one kind, whose stacks are walked.
--
--   alloc  trees built and folded, much garbage, on as many threads as there are capabilities
--   stm    transactions with retry, orElse and catchSTM between four threads
--   exc    exceptions thrown and caught through nested handlers and masks
--   deep   recursion over many stack chunks
--   gmp    powers of large Integers
--   lazy   chains of thunks: many update frames in a row
--
-- Everything is exported: GHC gives other functions no symbol.
module Main where

import Control.Concurrent
import Control.Exception
import Control.Monad
import Data.IORef
import GHC.Clock
import GHC.Conc
import System.Environment
import System.Exit

import Ready

-- ── alloc ──

data Tree = Leaf | Node Tree !Int Tree

growTree :: Int -> Int -> Tree
growTree 0 _ = Leaf
growTree d n = Node (growTree (d - 1) (2 * n)) n (growTree (d - 1) (2 * n + 1))
{-# NOINLINE growTree #-}

foldTree :: Tree -> Int
foldTree Leaf = 0
foldTree (Node l n r) = foldTree l + n + foldTree r
{-# NOINLINE foldTree #-}

allocRound :: Int -> IO Int
allocRound n = evaluate (foldTree (growTree 14 n))
{-# NOINLINE allocRound #-}

-- ── stm ──

stmTake :: TVar Int -> TVar Int -> STM Int
stmTake a b = takeFrom a `orElse` takeFrom b
  where
    takeFrom v = do
      n <- readTVar v
      when (n <= 0) retry
      writeTVar v $! n - 1
      pure n
{-# NOINLINE stmTake #-}

stmPut :: TVar Int -> STM ()
stmPut v = do
  n <- readTVar v
  let m = length (filter even [1 .. 300 + n `mod` 7])
  (when (m < 0) (throwSTM Overflow) >> writeTVar v (n + 1)) `catchSTM` handler
  where
    handler :: ArithException -> STM ()
    handler _ = pure ()
{-# NOINLINE stmPut #-}

stmRound :: TVar Int -> TVar Int -> Int -> IO Int
stmRound a b n = do
  atomically (stmPut (if even n then a else b))
  atomically (stmTake a b)
{-# NOINLINE stmRound #-}

-- ── exc ──

excDeep :: Int -> Int -> IO Int
excDeep 0 n
  | n `mod` 3 == 0 = throwIO (userError "at the bottom")
  | otherwise = evaluate (length (show (product (map toInteger [1 .. 40 + n `mod` 5]))))
excDeep d n = mask $ \restore -> do
  r <- restore (excDeep (d - 1) n) `onException` evaluate n
  pure $! r + 1
{-# NOINLINE excDeep #-}

excRound :: Int -> IO Int
excRound n = excDeep 30 n `catch` handler
  where
    handler :: IOException -> IO Int
    handler e = evaluate (length (show e))
{-# NOINLINE excRound #-}

-- ── deep ──

deepSum :: Int -> Int -> Int
deepSum 0 k = shallow k
deepSum n k = n + deepSum (n - 1) k
{-# NOINLINE deepSum #-}

-- Works at the bottom, so that samples find the whole stack.
shallow :: Int -> Int
shallow k = length (filter odd [k .. k + 100000])
{-# NOINLINE shallow #-}

deepRound :: Int -> IO Int
deepRound n = evaluate (deepSum 200000 n)
{-# NOINLINE deepRound #-}

-- ── gmp ──

gmpPower :: Integer -> Integer
gmpPower n = (n ^ (2000 :: Int)) `mod` (2 ^ (4253 :: Int) - 1)
{-# NOINLINE gmpPower #-}

gmpRound :: Int -> IO Int
gmpRound n = evaluate (fromInteger (gmpPower (toInteger n + 12345678901234567890)))
{-# NOINLINE gmpRound #-}

-- ── lazy ──

lazyChain :: Int -> [Int] -> [Int]
lazyChain 0 xs = xs
lazyChain n xs = lazyChain (n - 1) (scanl (+) n xs)
{-# NOINLINE lazyChain #-}

lazyRound :: Int -> IO Int
lazyRound n = evaluate (foldr (\x acc -> x + acc) 0 (lazyChain 20 [n .. n + 200]))
{-# NOINLINE lazyRound #-}

-- ── the rest ──

repeatUntil :: Double -> (Int -> IO Int) -> IO Int
repeatUntil end act = go 0 0
  where
    go n acc = do
      now <- getMonotonicTime
      if now >= end
        then pure n
        else do
          r <- act n
          go (n + 1) $! acc + r
{-# NOINLINE repeatUntil #-}

onThreads :: Int -> (Int -> IO Int) -> IO Int
onThreads n act = do
  total <- newIORef 0
  done <- forM [0 .. n - 1] $ \i -> do
    v <- newEmptyMVar
    _ <- forkOn i (act i >>= putMVar v)
    pure v
  forM_ done $ \v -> takeMVar v >>= \r -> modifyIORef' total (+ r)
  readIORef total

main :: IO ()
main = do
  args <- getArgs
  (mode, seconds) <- case args of
    [m, s] | [(x, "")] <- reads s -> pure (m, x)
    _ -> die "usage: Work MODE SECONDS"
  caps <- getNumCapabilities
  waitForGo
  start <- getMonotonicTime
  let run = repeatUntil (start + seconds)
  n <- case mode of
    "alloc" -> onThreads caps (const (run allocRound))
    "stm" -> do
      a <- newTVarIO 0
      b <- newTVarIO 0
      onThreads 4 (const (run (stmRound a b)))
    "exc" -> run excRound
    "deep" -> run deepRound
    "gmp" -> run gmpRound
    "lazy" -> run lazyRound
    _ -> die ("unknown mode " ++ mode)
  putStrLn ("{\"rounds\": " ++ show n ++ "}")
