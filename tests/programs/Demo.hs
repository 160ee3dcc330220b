-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface #-}
--
-- The sample program of scripts/demo: a made-up service on two capabilities, with Haskell work,
-- safe and unsafe foreign calls (demo.c). Its argument is how many seconds it runs.
--
-- Two threads handle requests: each asks the "database" (a safe call, asleep most of the time),
-- counts words in Haskell, checks a sum (a short unsafe call) and compresses (a safe call, busy).
-- A third rebuilds an index in Haskell and now and then takes a lock by an unsafe call that
-- blocks: meanwhile it keeps its capability, and holds up everybody's garbage collection.
--
-- Everything is exported, and no loop is a local function: GHC gives other functions no symbol, and the
-- profile would show a neighbour's name for them.
module Main where

import Control.Concurrent
import Control.Exception
import Control.Monad
import qualified Data.Map.Strict as Map
import Foreign.C.Types
import GHC.Clock
import System.Environment

foreign import ccall safe "demo_query_database" queryDatabase :: CInt -> IO CInt
foreign import ccall safe "demo_compress" compress :: CInt -> IO CInt
foreign import ccall unsafe "demo_checksum" checksum :: CInt -> IO CInt
foreign import ccall unsafe "demo_take_lock" takeLock :: IO ()

type Index = Map.Map Int Int

countWords :: Int -> Index
countWords seed = countInto 4000 seed Map.empty
{-# NOINLINE countWords #-}

countInto :: Int -> Int -> Index -> Index
countInto 0 _ index = index
countInto n x index = countInto (n - 1) x' (Map.insertWith (+) (x' `div` 65536 `mod` 512) 1 index)
  where
    x' = (x * 1103515245 + 12345) `mod` 2147483648
{-# NOINLINE countInto #-}

renderReply :: Index -> Int
renderReply = length . concatMap (\(k, n) -> show k ++ "=" ++ show n ++ ";") . Map.toList
{-# NOINLINE renderReply #-}

handleRequest :: Int -> IO Int
handleRequest n = do
  row <- queryDatabase (fromIntegral (n `mod` 100))
  size <- evaluate (renderReply (countWords (fromIntegral row + n)))
  check <- checksum (fromIntegral size)
  packed <- compress (fromIntegral size)
  pure $! size + fromIntegral check + fromIntegral packed
{-# NOINLINE handleRequest #-}

collatzLength :: Int -> Int
collatzLength 1 = 1
collatzLength n = 1 + collatzLength (if even n then n `div` 2 else 3 * n + 1)
{-# NOINLINE collatzLength #-}

longestChain :: Int -> Int
longestChain limit = maximum (map collatzLength [1 .. limit])
{-# NOINLINE longestChain #-}

rebuildIndex :: Int -> IO Int
rebuildIndex n = do
  r <- evaluate (longestChain (3000 + n `mod` 10))
  when (n `mod` 4 == 0) takeLock
  threadDelay 2000
  pure r
{-# NOINLINE rebuildIndex #-}

serve :: Double -> (Int -> IO Int) -> IO ()
serve end act = go 0
  where
    go n = do
      _ <- act n
      now <- getMonotonicTime
      when (now < end) (go (n + 1))

main :: IO ()
main = do
  [seconds] <- getArgs
  start <- getMonotonicTime
  let end = start + read seconds
  done <- forM [handleRequest, handleRequest, rebuildIndex] $ \act -> do
    v <- newEmptyMVar
    _ <- forkIO (serve end act `finally` putMVar v ())
    pure v
  mapM_ takeMVar done
