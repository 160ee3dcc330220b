-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Joined ROUNDS: a program whose eventlog can be compared with its own clock. Two labelled threads
-- make safe calls; a third computes and writes markers with the time by the monotonic clock.
module Main (main) where

import Control.Concurrent
import Control.Exception
import Control.Monad
import Debug.Trace
import Foreign.C.Types
import GHC.Clock
import GHC.Conc
import System.Environment

import Ready

foreign import ccall safe "joined_spin" joinedSpin :: CUInt -> IO ()
foreign import ccall safe "joined_sleep" joinedSleep :: CUInt -> IO ()

fib :: Int -> Integer
fib n = if n < 2 then toInteger n else fib (n - 1) + fib (n - 2)
{-# NOINLINE fib #-}

square :: Int -> Int
square n = length (filter even (map (\x -> x * x) [1 .. n]))
{-# NOINLINE square #-}

calls, computes :: Int -> IO ()
calls n = replicateM_ n (joinedSpin 200 >> joinedSleep 500 >> joinedSpin 20)
computes n = forM_ [1 .. n] $ \i -> do
  now <- getMonotonicTimeNSec
  traceMarkerIO ("clock " ++ show now)
  _ <- evaluate (fib (17 + i `mod` 2))
  evaluate (square (2000 + i `mod` 2))

main :: IO ()
main = do
  rounds <- getArgs >>= \args -> case args of
    [n] -> pure (read n)
    _ -> fail "usage: Joined ROUNDS"
  waitForGo
  done <- forM [("caller one", calls), ("caller two", calls), ("computer", computes)] $ \(label, act) -> do
    v <- newEmptyMVar
    t <- forkIO (act rounds `finally` putMVar v ())
    labelThread t label
    pure v
  mapM_ takeMVar done
  putStrLn "{}"
