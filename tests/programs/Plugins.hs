-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface #-}
--
-- Plugins MS LIBRARY…: loads each library in turn, runs its plugin_run() for MS milliseconds of CPU
-- time in a safe call, and unloads it again, so that the next one gets the same place. Prints
-- where each was.
module Main (main) where

import Control.Monad
import Foreign.C.String
import Foreign.C.Types
import System.Environment

import Ready

foreign import ccall unsafe "plugins_load" load :: CString -> IO ()
foreign import ccall safe "plugins_run" run :: CInt -> IO ()
foreign import ccall unsafe "plugins_unload" unload :: IO ()
foreign import ccall unsafe "plugins_print" printPlaces :: IO ()

main :: IO ()
main = do
  ms : libraries <- getArgs
  waitForGo
  forM_ libraries $ \library -> do
    withCString library load
    run (read ms)
    unload
  printPlaces
