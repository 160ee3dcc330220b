-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface #-}
--
-- Server: a program that does almost nothing. Threads wait on MVars and in threadDelay; one is
-- in a safe call that returns when the test sends "wake", one in a safe call that never
-- returns. From "spin" to "stop" one is on the CPU in a safe call. Prints "waiting" when all are
-- where they will stay; ends when its input ends.
module Main (main) where

import Control.Concurrent
import Control.Monad
import System.IO
import System.IO.Error

foreign import ccall safe "server_wait_for_wake" serverWaitForWake :: IO ()
foreign import ccall safe "server_sleep_long" serverSleepLong :: IO ()
foreign import ccall safe "server_answer_1ms" serverAnswer :: IO ()
foreign import ccall safe "server_spin" serverSpin :: IO ()
foreign import ccall unsafe "server_spinning" serverSpinning :: IO Int
foreign import ccall unsafe "server_stop" serverStop :: IO ()
foreign import ccall unsafe "server_wake" serverWake :: IO ()
foreign import ccall unsafe "server_parked" serverParked :: IO Int
foreign import ccall unsafe "server_print" serverPrint :: IO ()

commands :: MVar () -> MVar () -> IO ()
commands woken spun = do
  line <- try' getLine
  case line of
    Just "wake" -> serverWake >> takeMVar woken >> putStrLn "woken" >> commands woken spun
    Just "answer" -> serverAnswer >> putStrLn "answered" >> commands woken spun
    Just "spin" -> do
      _ <- forkIO (serverSpin >> putMVar spun ())
      let settle = do
            n <- serverSpinning
            when (n < 1) (threadDelay 1000 >> settle)
      settle
      putStrLn "spinning"
      commands woken spun
    Just "stop" -> serverStop >> takeMVar spun >> putStrLn "stopped" >> commands woken spun
    Just _ -> commands woken spun
    Nothing -> pure ()
  where
    try' act = fmap Just act `catchIOError` \e -> if isEOFError e then pure Nothing else ioError e

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  woken <- newEmptyMVar
  spun <- newEmptyMVar
  never <- newEmptyMVar
  _ <- forkIO (serverWaitForWake >> putMVar woken ())
  _ <- forkIO serverSleepLong
  replicateM_ 20 (forkIO (takeMVar never))
  _ <- forkIO (forever (threadDelay 100000))
  let settle = do
        n <- serverParked
        when (n < 2) (threadDelay 1000 >> settle)
  settle
  threadDelay 20000
  putStrLn "waiting"
  commands woken spun
  serverPrint
  putMVar never ()
