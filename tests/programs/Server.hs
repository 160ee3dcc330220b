-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface #-}
--
-- Server: a program that does almost nothing. Threads wait on MVars and in threadDelay; one is
-- in a safe call that returns when the test says "wake", one in a safe call that nothing ever
-- ends. Prints "waiting" when all are where they will stay; ends at the end of its input.
module Main (main) where

import Control.Concurrent
import Control.Monad
import System.IO
import System.IO.Error

foreign import ccall safe "server_wait_for_wake" serverWaitForWake :: IO ()
foreign import ccall safe "server_sleep_long" serverSleepLong :: IO ()
foreign import ccall safe "server_answer_1ms" serverAnswer :: IO ()
foreign import ccall unsafe "server_wake" serverWake :: IO ()
foreign import ccall unsafe "server_parked" serverParked :: IO Int
foreign import ccall unsafe "server_print" serverPrint :: IO ()

commands :: MVar () -> IO ()
commands woken = do
  line <- try' getLine
  case line of
    Just "wake" -> serverWake >> takeMVar woken >> putStrLn "woken" >> commands woken
    Just "answer" -> serverAnswer >> putStrLn "answered" >> commands woken
    Just _ -> commands woken
    Nothing -> pure ()
  where
    try' act = fmap Just act `catchIOError` \e -> if isEOFError e then pure Nothing else ioError e

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  woken <- newEmptyMVar
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
  commands woken
  serverPrint
  putMVar never ()
