-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- The program that scripts/bench profiles. Bench MODE N: prints `ready`, waits for a line, works, and
-- prints the CPU time and the wall time that the work took, in ns.
--
--   work   N rounds of an ordinary mixture: trees, Integers, C code; the same work each time
--   parts  the same without end, in parts of N rounds; prints for each part the time when it ended
--          (by the monotonic clock) and its CPU time
--   calls  N safe calls of a C function that does nothing
--   mixed  N seconds in the innermost of 30 Haskell and 30 C frames
module Main where

import Control.Exception
import Control.Monad
import Data.Word
import Foreign.C.Types
import GHC.Clock
import System.CPUTime
import System.Environment
import System.IO

foreign import ccall safe "bench_nothing" benchNothing :: CInt -> IO CInt
foreign import ccall unsafe "bench_down" benchDown :: CInt -> Word64 -> IO Word64

data Tree = Leaf | Node Tree !Int Tree

grow :: Int -> Int -> Tree
grow 0 _ = Leaf
grow d n = Node (grow (d - 1) (2 * n)) n (grow (d - 1) (2 * n + 1))
{-# NOINLINE grow #-}

total :: Tree -> Int
total Leaf = 0
total (Node l n r) = total l + n + total r
{-# NOINLINE total #-}

work :: Int -> IO ()
work n = forM_ [1 .. n] $ \i -> do
  _ <- evaluate (total (grow 12 i))
  _ <- evaluate (product [toInteger i .. toInteger i + 300] `mod` 1000003)
  benchDown 10 5000

parts :: Int -> IO ()
parts n = forever $ do
  cpu <- getCPUTime
  work n
  cpu' <- getCPUTime
  now <- getMonotonicTimeNSec
  putStrLn (show now ++ " " ++ show ((cpu' - cpu) `div` 1000))

calls :: Int -> IO ()
calls 0 = pure ()
calls n = benchNothing 1 >> calls (n - 1)

-- Each level leaves a return frame.
down :: Int -> Word64 -> IO Word64
down 0 n = benchDown 30 n
down d n = do
  r <- down (d - 1) n
  pure $! r + 1
{-# NOINLINE down #-}

mixed :: Int -> IO ()
mixed seconds = getMonotonicTimeNSec >>= go . (+ 1000000000 * fromIntegral seconds)
  where
    go end = do
      _ <- down 30 2000000
      now <- getMonotonicTimeNSec
      when (now < end) (go end)

main :: IO ()
main = do
  [mode, n] <- getArgs
  hSetBuffering stdout LineBuffering
  putStrLn "ready"
  _ <- getLine
  cpu <- getCPUTime
  wall <- getMonotonicTimeNSec
  case mode of
    "work" -> work (read n)
    "parts" -> parts (read n)
    "calls" -> calls (read n)
    "mixed" -> mixed (read n)
    _ -> ioError (userError "no such mode")
  cpu' <- getCPUTime
  wall' <- getMonotonicTimeNSec
  putStrLn (show ((cpu' - cpu) `div` 1000) ++ " " ++ show (wall' - wall))
