-- SPDX-License-Identifier: GPL-2.0-or-later
{-# LANGUAGE ForeignFunctionInterface #-}
--
-- Powers SECONDS: squares of large numbers, by foreign calls of libgmp's functions: a program
-- that is linked with libgmp.a contains them, whatever its Haskell libraries use.
module Main where

import Control.Monad
import Data.Word
import Foreign.C.Types
import Foreign.Marshal.Array
import Foreign.Ptr
import GHC.Clock
import System.Environment

import Ready

foreign import ccall unsafe "__gmpn_sqr" gmpnSqr :: Ptr Word64 -> Ptr Word64 -> CLong -> IO ()

limbs :: Int
limbs = 3000

squares :: Ptr Word64 -> Ptr Word64 -> Double -> IO ()
squares to from end = do
  replicateM_ 16 (gmpnSqr to from (fromIntegral limbs))
  now <- getMonotonicTime
  when (now < end) (squares to from end)

main :: IO ()
main = do
  args <- getArgs
  let seconds = case args of
        [s] -> read s
        _ -> error "usage: Powers SECONDS"
  withArray (map (\i -> fromIntegral i * 0x9e3779b97f4a7c15 + 1) [1 .. limbs]) $ \from ->
    allocaArray (2 * limbs) $ \to -> do
      waitForGo
      now <- getMonotonicTime
      squares to from (now + seconds)
