-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface #-}
--
-- A Haskell library for programs in other languages (loader.c, ctypes): compiled with -shared,
-- together with calls.c. embed_work makes a number of safe calls, embed_spin runs Haskell code for
-- a number of milliseconds, embed_print prints what the C functions counted.
module Embed () where

import Control.Monad
import qualified Data.Map.Strict as Map
import Data.IORef
import GHC.Clock

foreign import ccall safe "safe_sleep_1ms" safeSleep1ms :: IO ()
foreign import ccall unsafe "calls_print" callsPrint :: IO ()

foreign export ccall "embed_work" work :: Int -> IO ()
foreign export ccall "embed_spin" spin :: Int -> IO ()
foreign export ccall "embed_print" callsPrint :: IO ()

work :: Int -> IO ()
work n = replicateM_ n safeSleep1ms
{-# NOINLINE work #-}

spin :: Int -> IO ()
spin ms = do
  begun <- getMonotonicTime
  total <- newIORef 0
  let go = do
        n <- readIORef total
        writeIORef total $! (n + fill (2000 + n `mod` 7))
        now <- getMonotonicTime
        when (now < begun + fromIntegral ms / 1000) go
  go
{-# NOINLINE spin #-}

fill :: Int -> Int
fill n = Map.foldl' (+) 0 (Map.fromList [(k * 7919 `mod` 4001, k) | k <- [1 .. n]])
{-# NOINLINE fill #-}
