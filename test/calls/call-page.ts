/**
 * A telephone in a page: one side of a call of two (client-server API, "Voice over IP"), in plain JavaScript. It takes its TURN server from
 * the homeserver, relays everything through it, and exchanges `m.call.*` events in a room.
 */
export const CALL_PAGE = `
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  let sent = 0

  class Telephone {
    constructor({ token, roomId, callId, partyId }) {
      Object.assign(this, { token, roomId, callId, partyId, since: undefined })
    }
    async ask(method, path, body) {
      const headers = { authorization: 'Bearer ' + this.token, 'content-type': 'application/json' }
      const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
      const answer = await fetch('/_matrix/client/v3' + path, init)
      if (!answer.ok) throw new Error(method + ' ' + path + ': ' + answer.status)
      return answer.json()
    }
    send(type, content) {
      const path = '/rooms/' + encodeURIComponent(this.roomId) + '/send/' + type + '/c' + Date.now() + sent++
      return this.ask('PUT', path, { call_id: this.callId, party_id: this.partyId, version: '1', ...content })
    }
    /** The next event of the other side of this type. */
    async hear(type) {
      for (;;) {
        const since = this.since ? '&since=' + encodeURIComponent(this.since) : ''
        const { next_batch, rooms } = await this.ask('GET', '/sync?timeout=5000' + since)
        const events = rooms?.join?.[this.roomId]?.timeline?.events ?? []
        const found = events.find((event) => event.type === type && event.content.party_id !== this.partyId)
        this.since = next_batch
        if (found) return found.content
      }
    }
    async open() {
      const { uris, username, password } = await this.ask('GET', '/voip/turnServer')
      const iceServers = [{ urls: uris, username, credential: password }]
      this.peer = new RTCPeerConnection({ iceServers, iceTransportPolicy: 'relay' })
      const media = await navigator.mediaDevices.getUserMedia({ audio: true, video: true })
      for (const track of media.getTracks()) this.peer.addTrack(track, media)
    }
    async describe(description) {
      await this.peer.setLocalDescription(description)
      while (this.peer.iceGatheringState !== 'complete') await wait(20)
      const { type, sdp } = this.peer.localDescription
      return { type, sdp }
    }
    async call() {
      await this.open()
      await this.send('m.call.invite', { lifetime: 60000, offer: await this.describe(await this.peer.createOffer()) })
      const { answer } = await this.hear('m.call.answer')
      await this.peer.setRemoteDescription(answer)
    }
    async pickUp() {
      const { offer } = await this.hear('m.call.invite')
      await this.open()
      await this.peer.setRemoteDescription(offer)
      await this.send('m.call.answer', { answer: await this.describe(await this.peer.createAnswer()) })
    }
    /** What arrives from the other side, and by which ways. */
    async hears() {
      const stats = [...(await this.peer.getStats()).values()]
      const of = (kind) => stats.find((entry) => entry.type === 'inbound-rtp' && entry.kind === kind)
      const pair = stats.find((entry) => entry.type === 'candidate-pair' && entry.nominated)
      const way = (id) => stats.find((entry) => entry.id === id)?.candidateType
      return {
        state: this.peer.connectionState,
        audioPackets: of('audio')?.packetsReceived ?? 0,
        frames: of('video')?.framesDecoded ?? 0,
        ways: pair ? [way(pair.localCandidateId), way(pair.remoteCandidateId)] : [],
      }
    }
    async hangUp() {
      await this.send('m.call.hangup', { reason: 'user_hangup' })
      this.peer.close()
    }
  }
`
