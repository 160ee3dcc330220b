-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface, InterruptibleFFI #-}
--
-- Nest MODE N [REPEATS]: safe calls that do more than begin and return.
--
--   nest DEPTH REPEATS     a safe call whose C calls back into Haskell, which makes the next
--                          safe call, DEPTH deep; each level times itself (nest.c)
--   export DEPTH REPEATS   the same, by way of a foreign export
--   killed COUNT           interruptible calls that sleep for ten seconds, ended by killThread
--   jump COUNT             a safe call whose C leaves its inner functions by longjmp
--   throwback COUNT        the callback throws an exception and catches it itself
--   foreign COUNT          threads that C made call into Haskell, which makes a safe call
--   threadexit COUNT       the same, but in that safe call C ends the thread by pthread_exit
--   bound COUNT            four bound threads (forkOS), COUNT safe calls each
--   unsafes CALLS ROUNDS   calls with ROUNDS of work in C and a callback that makes an unsafe call
--   safes CALLS ROUNDS     the same with a safe call
--   loop COUNT             an event loop in C, in a safe call, which calls back COUNT times, every 50 ms
module Main (main) where

import Control.Concurrent
import Control.Exception
import Control.Monad
import Foreign.C.Types
import Foreign.Ptr
import System.Environment
import System.Exit
import System.IO

import Ready

type Callback = CInt -> IO ()

foreign import ccall "wrapper" wrapCallback :: Callback -> IO (FunPtr Callback)
foreign import ccall safe "nest_down" nestDown :: CInt -> FunPtr Callback -> IO ()
foreign import ccall safe "nest_down_export" nestDownExport :: CInt -> IO ()
foreign import ccall safe "nest_bottom_1ms" nestBottom :: IO ()
foreign import ccall safe "nest_jump_1ms" nestJump :: IO ()
foreign import ccall safe "nest_call_back" nestCallBack :: CInt -> FunPtr Callback -> IO ()
foreign import ccall safe "nest_foreign_thread" nestForeignThread :: CInt -> FunPtr Callback -> IO ()
foreign import ccall safe "nest_loop" nestLoop :: CInt -> FunPtr Callback -> IO ()
foreign import ccall safe "nest_own" nestOwn :: CInt -> FunPtr Callback -> IO ()
foreign import ccall unsafe "nest_back" nestBackUnsafe :: IO ()
foreign import ccall safe "nest_back" nestBackSafe :: IO ()
foreign import ccall safe "nest_exit_thread" nestExitThread :: IO ()
foreign import ccall safe "nest_bound_100us" nestBound :: IO ()
foreign import ccall interruptible "nest_interruptible_10s" nestInterruptible :: IO ()
foreign import ccall unsafe "nest_print" nestPrint :: IO ()

foreign export ccall nestStep :: CInt -> IO ()

nestStep :: CInt -> IO ()
nestStep 0 = nestBottom
nestStep n = nestDownExport n

wrapperStep :: IO (FunPtr Callback)
wrapperStep = do
  self <- newEmptyMVar
  cb <- wrapCallback $ \n -> if n == 0 then nestBottom else readMVar self >>= nestDown n
  putMVar self cb
  pure cb

main :: IO ()
main = do
  args <- getArgs
  (mode, n, repeats) <- case args of
    [m, a] | [(x, "")] <- reads a -> pure (m, x, 1)
    [m, a, b] | [(x, "")] <- reads a, [(y, "")] <- reads b -> pure (m, x, y :: Int)
    _ -> die "usage: Nest MODE N [REPEATS]"
  waitForGo
  case mode of
    "nest" -> do
      cb <- wrapperStep
      replicateM_ repeats (nestDown (fromIntegral n) cb)
    "export" -> replicateM_ repeats (nestDownExport (fromIntegral n))
    "killed" -> replicateM_ n $ do
      done <- newEmptyMVar
      t <- forkIO (nestInterruptible `finally` putMVar done ())
      threadDelay 20000
      killThread t
      takeMVar done
    "jump" -> replicateM_ n nestJump
    "throwback" -> do
      cb <- wrapCallback $ \k ->
        throwIO (userError (show k)) `catch` \e -> const nestBottom (e :: IOException)
      replicateM_ n (nestCallBack 1 cb)
    "foreign" -> do
      cb <- wrapCallback (const nestBottom)
      replicateM_ n (nestForeignThread 1 cb)
    "threadexit" -> do
      cb <- wrapCallback (const nestExitThread)
      replicateM_ n (nestForeignThread 1 cb)
    "bound" -> do
      done <- replicateM 4 $ do
        v <- newEmptyMVar
        _ <- forkOS (replicateM_ n nestBound >> putMVar v ())
        pure v
      mapM_ takeMVar done
    "unsafes" -> do
      cb <- wrapCallback (const nestBackUnsafe)
      replicateM_ n (nestOwn (fromIntegral repeats) cb)
    "safes" -> do
      cb <- wrapCallback (const nestBackSafe)
      replicateM_ n (nestOwn (fromIntegral repeats) cb)
    "loop" -> do
      cb <- wrapCallback (const nestBottom)
      putStrLn "looping" >> hFlush stdout
      nestLoop (fromIntegral n) cb
    _ -> die ("unknown mode " ++ mode)
  nestPrint
