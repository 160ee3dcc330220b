-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Logged ROUNDS: a program that logs what it does in its eventlog. It computes between two
-- markers, makes safe calls from two threads between a START and a STOP message, and annotates
-- others for hs-safescope, with both of the keywords that its documentation and its tool use. Its
-- last line has what its own clock shows of all this, as JSON.
module Main where

import Control.Concurrent
import Control.Exception
import Control.Monad
import Data.IORef
import Data.Word
import Debug.Trace
import Foreign.C
import Foreign.Ptr
import GHC.Clock
import GHC.Conc
import GHC.Stack.CCS
import Numeric
import System.Environment

foreign import ccall safe "logged_sleep" loggedSleep :: CUInt -> IO ()
foreign import ccall safe "logged_spin" loggedSpin :: CUInt -> IO ()
foreign import ccall unsafe "logged_tid" loggedTid :: IO CLong
foreign import ccall "&logged_spin" loggedSpinAddress :: FunPtr (CUInt -> IO ())

workLight, workHeavy :: Int -> Int
workLight n = sum [x * x `mod` 7 | x <- [1 .. n]]
{-# NOINLINE workLight #-}
workHeavy n = sum [x * x `mod` 11 | x <- [1 .. 3 * n]]
{-# NOINLINE workHeavy #-}

compute :: Int -> IO ()
compute n = do
  _ <- evaluate (workLight (100000 + n `mod` 3))
  _ <- evaluate (workHeavy (100000 + n `mod` 5))
  pure ()
{-# NOINLINE compute #-}

onThreads :: Int -> (Int -> IO ()) -> IO ()
onThreads n act = do
  done <- forM [1 .. n] $ \i -> do
    v <- newEmptyMVar
    t <- forkIO (act i `finally` putMVar v ())
    labelThread t ("worker " ++ show i)
    pure v
  mapM_ takeMVar done

-- A call with its marks; the time of all calls by the program's own clock, from inside and outside.
data Tally = Tally {calls, inner, outer :: !Word64}

timed :: IORef Tally -> IO (Word64, Word64) -> IO ()
timed tally act = do
  before <- getMonotonicTimeNSec
  (start, end) <- act
  after <- getMonotonicTimeNSec
  atomicModifyIORef' tally $ \t -> (Tally (calls t + 1) (inner t + end - start) (outer t + after - before), ())

annotated :: IORef Tally -> Int -> IO ()
annotated tally n = timed tally $ do
  let name = show n ++ " logged_spin"
      address = showHex (ptrToIntPtr (castFunPtrToPtr loggedSpinAddress)) ""
  tid <- loggedTid
  stack <- ccsToStrings =<< getCurrentCCS ()
  traceEventIO ("START " ++ name)
  start <- getMonotonicTimeNSec
  traceEventIO ((if even n then "ANN_SCC " else "ANN_CCS ") ++ name ++ " " ++ show stack)
  traceEventIO ("ANN_TH " ++ name ++ " " ++ show tid)
  traceEventIO ("ANN_CALL_TO 0x" ++ address ++ " 0x0 " ++ show tid)
  loggedSpin 500
  traceEventIO ("ANN_CALL_RET 0x" ++ address ++ " 0x0 " ++ show tid)
  end <- getMonotonicTimeNSec
  traceEventIO ((if even n then "STOP " else "END ") ++ name)
  pure (start, end)
{-# NOINLINE annotated #-}

main :: IO ()
main = do
  rounds <- getArgs >>= \args -> case args of
    [n] -> pure (read n)
    _ -> fail "usage: Logged ROUNDS"
  none <- newIORef (Tally 0 0 0)
  traceMarkerIO "compute begins"
  timed none $ do
    start <- getMonotonicTimeNSec
    mapM_ compute [1 .. rounds]
    end <- getMonotonicTimeNSec
    pure (start, end)
  traceMarkerIO "compute ends"
  plain <- newIORef (Tally 0 0 0)
  traceEventIO "START calls of ours"
  onThreads 2 $ \_ -> replicateM_ 40 $ timed plain $ do
    start <- getMonotonicTimeNSec
    loggedSleep 1000
    end <- getMonotonicTimeNSec
    pure (start, end)
  traceEventIO "STOP calls of ours"
  marked <- newIORef (Tally 0 0 0)
  mapM_ (annotated marked) [1 .. 40]
  tid <- loggedTid
  c <- readIORef none
  p <- readIORef plain
  m <- readIORef marked
  let tell t = "{\"calls\": " ++ show (calls t) ++ ", \"inner_ns\": " ++ show (inner t) ++ ", \"outer_ns\": " ++ show (outer t) ++ "}"
  putStrLn ("{\"compute\": " ++ tell c ++ ", \"plain\": " ++ tell p ++ ", \"annotated\": " ++ tell m
    ++ ", \"tid\": " ++ show tid ++ "}")
