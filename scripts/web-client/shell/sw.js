/* Asks for media at the paths of today, with the page's access token: a page cannot do that for its pictures. */

const MEDIA = /^\/_matrix\/(?:media\/v3|client\/v1\/media)\/(download|thumbnail)\//

self.addEventListener('install', (event) => event.waitUntil(self.skipWaiting()))
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()))

self.addEventListener('fetch', (event) => {
  const { pathname } = new URL(event.request.url)
  if (event.request.method !== 'GET' || !MEDIA.test(pathname)) return
  event.respondWith(withToken(event))
})

async function withToken({ request, clientId }) {
  const client = await self.clients.get(clientId)
  const token = client && (await tokenOf(client))
  if (!token) return fetch(request)
  const address = new URL(request.url)
  address.pathname = address.pathname.replace(MEDIA, '/_matrix/client/v1/media/$1/')
  return fetch(address, { headers: { authorization: `Bearer ${token}` } })
}

function tokenOf(client) {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.onmessage = ({ data }) => resolve(data)
    client.postMessage('token', [port2])
  })
}
