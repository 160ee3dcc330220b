-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- Waits MODE MILLISECONDS: Haskell threads that wait for each other, or have no need to. Prints one
-- line of JSON with the times by the program's own clock.
--
--   blackhole  three threads work a little, and then need a value that a fourth one is evaluating
--   apart      the same, each with a value of its own
--   pinned     three computing threads pinned to capability 0
--   even       one computing thread on each of two capabilities
--   return     six threads pinned to capability 0 make safe calls and compute
--   stm        two threads wake each other by transactions, all the time
--   seldom     the same a hundred times a second, by transactions and by MVars
--   collected  computes for 3 ms, collects everything, and then waits for 20 ms, over and over
--   called     the same with a safe call that calls back, instead of a collection
--   queued     six threads wait for what a seventh puts into their MVars every 100 ms, and then for
--              three computing threads to leave the capability to them (-N1)
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Exception
import Control.Monad
import Foreign.C.Types
import Foreign.Marshal.Array (withArray)
import Foreign.Ptr
import GHC.Clock
import System.Environment
import System.Exit
import System.IO.Unsafe (unsafeInterleaveIO)
import System.Mem (performMajorGC)

import Ready

foreign import ccall safe "poll" cPoll :: Int -> Int -> Int -> IO Int

type Compare = Ptr Int -> Ptr Int -> IO CInt
foreign import ccall "wrapper" wrapCompare :: Compare -> IO (FunPtr Compare)
foreign import ccall safe "qsort" cSort :: Ptr Int -> CSize -> CSize -> FunPtr Compare -> IO ()

data Tree = Leaf | Node Tree !Int Tree

growTree :: Int -> Int -> Tree
growTree 0 _ = Leaf
growTree d n = Node (growTree (d - 1) (2 * n)) n (growTree (d - 1) (2 * n + 1))
{-# NOINLINE growTree #-}

foldTree :: Tree -> Int
foldTree Leaf = 0
foldTree (Node l n r) = foldTree l + n + foldTree r
{-# NOINLINE foldTree #-}

compute :: Double -> IO Int
compute seconds = do
  start <- getMonotonicTime
  let go acc = do
        r <- evaluate (foldTree (growTree 8 acc))
        now <- getMonotonicTime
        if now < start + seconds then go ((acc + r) `mod` 1000) else pure acc
  go 1
{-# NOINLINE compute #-}

-- | Runs them all at once; returns how long each took.
allOf :: [(IO Double -> IO ()) -> IO ()] -> IO [Double]
allOf starts = do
  boxes <- forM starts $ \start -> do
    box <- newEmptyMVar
    start (\act -> act >>= putMVar box)
    pure box
  mapM takeMVar boxes

timed :: IO a -> IO Double
timed act = do
  start <- getMonotonicTime
  _ <- act
  end <- getMonotonicTime
  pure (end - start)

-- | Repeats an action until then.
during :: Double -> IO () -> IO Int
during seconds act = do
  start <- getMonotonicTime
  let go n = do
        act
        now <- getMonotonicTime
        if now < start + seconds then go (n + 1) else pure (n + 1 :: Int)
  go 0

waiters :: Bool -> Double -> IO [Double]
waiters shared seconds = do
  let slow = unsafeInterleaveIO (compute seconds)
  value <- slow
  drop 1 <$> allOf
    ((\done -> void (forkOn 0 (done (timed (evaluate value)))))
      : [ \done -> void (forkOn 1 (threadDelay (i * 50000) >> work (10000 + i) >> done (wait value)))
        | i <- [1 .. 3] ])
  where
    -- enough for a sample to show which function does it
    work :: Int -> IO ()
    work n = forM_ [1 .. n] $ \i -> evaluate (foldTree (growTree 7 i))
    wait value
      | shared = timed (evaluate value)
      | otherwise = pure 0

turns :: Double -> IO Int
turns seconds = do
  a <- newTVarIO (0 :: Int)
  b <- newTVarIO 0
  end <- newTVarIO False
  let pass from to = atomically $ do
        over <- readTVar end
        n <- readTVar from
        if over then pure True else do
          when (n == 0) retry
          writeTVar from (n - 1)
          readTVar to >>= writeTVar to . (+ 1)
          pure False
      go from to n = do
        over <- pass from to
        if over then pure n else go from to (n + 1 :: Int)
  box1 <- newEmptyMVar
  box2 <- newEmptyMVar
  _ <- forkOn 0 (go a b 0 >>= putMVar box1)
  _ <- forkOn 1 (go b a 0 >>= putMVar box2)
  atomically (writeTVar a 1)
  threadDelay (round (seconds * 1e6))
  atomically (writeTVar end True)
  (+) <$> takeMVar box1 <*> takeMVar box2

seldom :: Double -> IO Int
seldom seconds = do
  v <- newTVarIO (0 :: Int)
  box <- newEmptyMVar
  _ <- forkIO . forever $ atomically (readTVar v >>= \n -> when (n == 0) retry >> writeTVar v 0) >> putMVar box ()
  during seconds (threadDelay 10000 >> atomically (writeTVar v 1) >> takeMVar box)

callBack :: IO ()
callBack = do
  compare2 <- wrapCompare (\_ _ -> fromIntegral <$> cPoll 0 0 1)
  withArray [2, 1] $ \p -> cSort p 2 8 compare2
  freeHaskellFunPtr compare2

after :: IO () -> Double -> IO Double
after act seconds = do
  total <- newMVar 0
  _ <- during seconds $ do
    _ <- compute 0.003
    act
    waited <- timed (threadDelay 20000)
    modifyMVar_ total (\t -> pure $! t + waited)
  takeMVar total

-- | How long the six waited for their MVars in all, and how long for the capability after that.
queued :: Double -> IO (Double, Double)
queued seconds = do
  totals <- newMVar (0, 0)
  boxes <- replicateM 6 newEmptyMVar
  forM_ boxes $ \box -> forkIO . forever $ do
    before <- getMonotonicTime
    put <- takeMVar box
    now <- getMonotonicTime
    _ <- compute 0.003
    modifyMVar_ totals (\(w, q) -> let (w', q') = (w + put - before, q + now - put) in w' `seq` q' `seq` pure (w', q'))
  computed <- replicateM 3 $ do
    done <- newEmptyMVar
    _ <- forkIO (compute seconds >>= putMVar done)
    pure done
  _ <- during (seconds - 0.2) (threadDelay 100000 >> forM_ boxes (\box -> getMonotonicTime >>= putMVar box))
  mapM_ takeMVar computed
  takeMVar totals

main :: IO ()
main = do
  args <- getArgs
  (mode, ms) <- case args of
    [m, a] | [(x, "")] <- reads a -> pure (m, x)
    _ -> die "usage: Waits MODE MILLISECONDS"
  waitForGo
  let seconds = fromIntegral (ms :: Int) / 1000
      say name n = putStrLn ("{\"" ++ name ++ "\": " ++ show (n :: Double) ++ "}")
      three fork act = allOf (replicate 3 (\done -> void (fork (done (timed act)))))
      waited = sum . map (* 1e9)
  case mode of
    "blackhole" -> waiters True seconds >>= say "waited_ns" . waited
    "apart" -> waiters False seconds >>= say "waited_ns" . waited
    "pinned" -> three (forkOn 0) (compute seconds) >>= say "took_ns" . waited
    "even" -> allOf [ \done -> void (forkOn n (done (timed (compute seconds)))) | n <- [0, 1] ] >>= say "took_ns" . waited
    "return" -> allOf (replicate 6 (\done -> void (forkOn 0 (done (timed (during seconds (cPoll 0 0 3 >> void (compute 0.002))))))))
      >>= say "took_ns" . waited
    "stm" -> turns seconds >>= say "turns" . fromIntegral
    "collected" -> after performMajorGC seconds >>= say "waited_ns" . (* 1e9)
    "called" -> after callBack seconds >>= say "waited_ns" . (* 1e9)
    "queued" -> queued seconds >>= \(w, q) -> putStrLn ("{\"waited_ns\": " ++ show (w * 1e9) ++ ", \"queued_ns\": " ++ show (q * 1e9) ++ "}")
    "seldom" -> seldom seconds >>= say "turns" . fromIntegral
    _ -> die ("unknown mode " ++ mode)
