-- SPDX-License-Identifier: GPL-2.0-or-later
-- Functions of the call tree of Names.hs.
module NamesB (gamma, delta, build) where

import Foreign.C.Types
import System.IO.Unsafe

foreign import ccall unsafe "_ZN5names4spinEi" spin :: CInt -> IO CInt

gamma :: Int -> Int
gamma n = work 40000 (fromIntegral n)
{-# NOINLINE gamma #-}

work :: Int -> Word -> Int
work 0 x = fromIntegral (x `rem` 1000)
work k x = work (k - 1) (x * 6364136223846793005 + 1442695040888963407)

delta :: Int -> Int
delta n =
  case unsafePerformIO (spin (fromIntegral n)) of
    s -> case gamma (n + fromIntegral s) of
      g -> g + fromIntegral s
{-# NOINLINE delta #-}

-- | The whole list is built before its first element is visible.
build :: Int -> [Int]
build n = go n []
  where
    go 0 acc = acc
    go k acc = let x = gamma1 k in x `seq` go (k - 1) (x : acc)
{-# NOINLINE build #-}

gamma1 :: Int -> Int
gamma1 k = work 20 (fromIntegral k)
{-# NOINLINE gamma1 #-}
