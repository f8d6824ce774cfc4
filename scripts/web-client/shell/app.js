import { AutoDiscovery } from 'matrix-js-sdk/src/autodiscovery'
import MatrixChat from 'matrix-react-sdk/lib/components/structures/MatrixChat'
import { setLanguage } from 'matrix-react-sdk/lib/languageHandler'
import { MatrixClientPeg } from 'matrix-react-sdk/lib/MatrixClientPeg'
import SdkConfig from 'matrix-react-sdk/lib/SdkConfig'
import { setTheme } from 'matrix-react-sdk/lib/theme'
import AutoDiscoveryUtils from 'matrix-react-sdk/lib/utils/AutoDiscoveryUtils'
import React from 'react'
import ReactDOM from 'react-dom'

/** `#/room/!x:y?via=z` as the client reads it. */
function screen() {
  const [path = '', query = ''] = window.location.hash.slice(1).split('?')
  return { path: path.replace(/^\//, ''), params: Object.fromEntries(new URLSearchParams(query)) }
}

/** The service worker asks for the token that media need. */
async function startWorker() {
  navigator.serviceWorker.addEventListener('message', ({ ports }) =>
    ports[0].postMessage(MatrixClientPeg.get()?.getAccessToken()),
  )
  await navigator.serviceWorker.register('/sw.js')
}

async function findServer(wellKnown) {
  const { base_url, server_name } = wellKnown['m.homeserver']
  const discovered = await AutoDiscovery.fromDiscoveryConfig(wellKnown)
  const server = await AutoDiscoveryUtils.buildValidatedConfigFromDiscovery(server_name ?? base_url, discovered, true)
  server.isDefault = true
  SdkConfig.add({ validated_server_config: server })
}

export async function open(config) {
  await startWorker()
  await setLanguage(['en'])
  await setTheme('light')
  await findServer(config.default_server_config)
  const { path, params } = screen()
  const props = {
    config: SdkConfig.get(),
    onNewScreen(next, replace) {
      const hash = `#/${next}`
      if (window.location.hash === hash) return
      if (replace) window.location.replace(hash)
      else window.location.assign(hash)
    },
    makeRegistrationUrl: () => window.location.href,
    realQueryParams: {},
    startingFragmentQueryParams: params,
    enableGuest: false,
    initialScreenAfterLogin: path ? { screen: path, params } : undefined,
    defaultDeviceDisplayName: 'Chromium',
    onTokenLoginCompleted: () => {},
  }
  const ref = (chat) => {
    window.matrixChat = chat
  }
  ReactDOM.render(React.createElement(MatrixChat, { ...props, ref }), document.getElementById('matrixchat'))
  window.addEventListener('hashchange', () => window.matrixChat?.showScreen(screen().path, screen().params))
}
