-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- How a test program and its test are synchronised: the program prints "ready", the test attaches
-- and then sends "go".
module Ready (waitForGo) where

import System.IO

waitForGo :: IO ()
waitForGo = do
  putStrLn "ready"
  hFlush stdout
  _ <- getLine
  pure ()
