-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface #-}
--
-- Sleepers THREADS MICROSECONDS: this many OS threads that sleep for about this long, again and again, each in a safe
-- call, and use hardly any CPU.
module Main (main) where

import Control.Concurrent
import Control.Monad
import Foreign.C
import System.Environment

import Ready

foreign import ccall safe "usleep" cSleep :: CUInt -> IO CInt

main :: IO ()
main = do
  [n, us] <- map read <$> getArgs
  waitForGo
  forM_ [1 .. n :: Int] $ \i -> threadDelay 3000 >> forkIO (forever (cSleep (fromIntegral (us + 1009 * i))))
  threadDelay 60000000
