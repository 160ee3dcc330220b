-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface #-}
--
-- Lanes MODE SECONDS: who has which capability, and who waits for what (lanes.c times its calls).
--
--   busy      three Haskell threads that compute and allocate
--   together  four threads in safe calls that all return at once, each of which then has some work
--   caps      three computing threads; setNumCapabilities 3, then 2, for equal parts of the time
--   bound     two forkOS threads in safe calls, and one that computes
--   callin    two C threads that call Haskell
--   blocked   labelled threads: on an MVar, in STM, in threadDelay, on a black hole, and one that
--             computes
--   requests  a thread that computes for a while, then waits to the end; beside it one short-lived
--             thread after the other, which makes a safe call, then waits for its answer
--   crowd     as requests, with thirty thousand threads that wait to the end, while one computes
module Main where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Exception
import Control.Monad
import Foreign.C.Types
import GHC.Clock
import GHC.Conc (labelThread)
import System.Environment
import System.Exit
import System.IO.Unsafe (unsafeInterleaveIO)

import Ready

foreign import ccall safe "lanes_together" lanesTogether :: CInt -> IO ()
foreign import ccall unsafe "lanes_spin" lanesSpin :: CInt -> IO ()
foreign import ccall safe "lanes_pause" lanesPause :: CInt -> IO ()
foreign import ccall safe "lanes_call_in" lanesCallIn :: CInt -> IO ()
foreign import ccall unsafe "lanes_print" lanesPrint :: IO ()

foreign export ccall lanesBack :: CInt -> IO CInt

data Tree = Leaf | Node Tree !Int Tree

growTree :: Int -> Int -> Tree
growTree 0 _ = Leaf
growTree d n = Node (growTree (d - 1) (2 * n)) n (growTree (d - 1) (2 * n + 1))
{-# NOINLINE growTree #-}

foldTree :: Tree -> Int
foldTree Leaf = 0
foldTree (Node l n r) = foldTree l + n + foldTree r
{-# NOINLINE foldTree #-}

-- | Computes, and makes garbage, until the given time.
compute :: Double -> IO ()
compute end = do
  forM_ [1 .. 20] $ \n -> evaluate (foldTree (growTree 10 n))
  now <- getMonotonicTime
  when (now < end) (compute end)
{-# NOINLINE compute #-}

until' :: Double -> IO () -> IO ()
until' end act = do
  now <- getMonotonicTime
  when (now < end) (act >> until' end act)

lanesBack :: CInt -> IO CInt
lanesBack n = do
  s <- evaluate (foldTree (growTree 11 (fromIntegral n)))
  pure $! fromIntegral (s `mod` 7)
{-# NOINLINE lanesBack #-}

spawn :: (IO () -> IO ThreadId) -> String -> IO () -> IO (MVar ())
spawn fork label act = do
  done <- newEmptyMVar
  _ <- fork $ do
    me <- myThreadId
    labelThread me label
    act `finally` putMVar done ()
  pure done

together :: [IO (MVar ())] -> IO ()
together starts = sequence starts >>= mapM_ takeMVar

blocked :: Double -> Double -> IO ()
blocked end seconds = do
  never <- newEmptyMVar :: IO (MVar ())
  shut <- newTVarIO False
  slow <- unsafeInterleaveIO (compute end)
  together
    [ spawn forkIO "worker" (compute end)
    , spawn forkIO "holder" (evaluate slow)
    , spawn forkIO "black-hole" (threadDelay 200000 >> evaluate slow)
    , spawn forkIO "on-mvar" (takeMVar never)
    , spawn forkIO "in-stm" (atomically (readTVar shut >>= check))
    , spawn forkIO "sleeper" (threadDelay (round (seconds * 1e6)) >> putMVar never ()
                              >> atomically (writeTVar shut True))
    ]

-- | A thread that gets its answer has nothing left to do, and ends within microseconds.
request :: IO ()
request = do
  answer <- newEmptyMVar
  _ <- forkIO (lanesPause 5 >> takeMVar answer)
  threadDelay 40000
  putMVar answer ()
  threadDelay 10000

-- | Prints when it began and when it was done.
setAfter :: Double -> Int -> IO ()
setAfter seconds n = do
  threadDelay (round (seconds * 1e6))
  begun <- getMonotonicTime
  setNumCapabilities n
  done <- getMonotonicTime
  putStrLn (unwords ["capabilities", show n, show begun, show done])

run :: String -> Double -> IO ()
run mode seconds = do
  start <- getMonotonicTime
  let end = start + seconds
  case mode of
    "busy" -> together [spawn forkIO ("busy" ++ show i) (compute end) | i <- [1 .. 3 :: Int]]
    "together" -> together
      [ spawn forkIO ("together" ++ show i)
          (until' end (lanesTogether 40 >> lanesSpin 3)) | i <- [1 .. 4 :: Int]]
    "caps" -> together
      [ spawn forkIO "sets" $ do
          setAfter (seconds / 3) 3
          setAfter (seconds / 3) 2
          threadDelay (round (seconds * 1e6 / 3))
      , spawn forkIO "a" (compute end), spawn forkIO "b" (compute end), spawn forkIO "c" (compute end)
      ]
    "bound" -> together
      [ spawn forkOS "bound1" (until' end (lanesPause 5 >> compute 0))
      , spawn forkOS "bound2" (until' end (lanesPause 5 >> compute 0))
      , spawn forkIO "free" (compute end)
      ]
    "callin" -> lanesCallIn (round (seconds * 500))
    "blocked" -> blocked end seconds
    "requests" -> do
      never <- newEmptyMVar
      begun <- newEmptyMVar
      waits <- spawn forkIO "waits" (putMVar begun () >> compute (start + 0.5) >> takeMVar never)
      takeMVar begun
      until' end request
      putMVar never ()
      takeMVar waits
    "crowd" -> do
      never <- newEmptyMVar
      replicateM_ 30000 (forkIO (readMVar never))
      works <- spawn forkIO "works" (compute end)
      until' end request
      putMVar never ()
      takeMVar works
    _ -> die "Lanes MODE SECONDS"

main :: IO ()
main = do
  [mode, seconds] <- getArgs
  waitForGo
  run mode (read seconds)
  lanesPrint
  -- The kernel can be asked how long the threads ran while they exist and sleep.
  void (try getLine :: IO (Either IOException String))
