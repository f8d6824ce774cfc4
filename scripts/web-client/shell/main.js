/* The page around the client: what a web server's configuration and a platform give it. The client's own code is as it was published. */

import BasePlatform from 'matrix-react-sdk/lib/BasePlatform'
import PlatformPeg from 'matrix-react-sdk/lib/PlatformPeg'
import SdkConfig from 'matrix-react-sdk/lib/SdkConfig'

class Platform extends BasePlatform {
  getConfig = async () => undefined
  getDefaultDeviceDisplayName = () => 'Chromium'
  getHumanReadableName = () => 'Web Platform'
  requestNotificationPermission = async () => 'denied'
  getAppVersion = async () => 'test'
  reload = () => window.location.reload()
}

async function start() {
  const config = await (await fetch('/config.json')).json()
  PlatformPeg.set(new Platform())
  SdkConfig.put(config)
  // What comes next reads the configuration as it is loaded.
  const { open } = await import('./app.js')
  await open(config)
}

void start()
