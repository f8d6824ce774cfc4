// An application service inside a homeserver: @echo repeats what is said to it, and @echo_<name> are users that it makes when
// somebody asks for them. See registration.yaml beside this file.

/** @param {{ as(localpart?: string): Promise<any> }} host */
export function createHostedService(host) {
  const isForUs = (userId) => /^@echo(_[^:]*)?:/.test(userId)

  async function answer(event) {
    if (event.type === 'm.room.member' && event.content.membership === 'invite' && isForUs(event.state_key)) {
      const invited = await host.as(event.state_key.slice(1).split(':')[0])
      await invited.join(event.room_id)
    }
    if (event.type !== 'm.room.message' || event.content.msgtype !== 'm.text' || isForUs(event.sender)) return
    const echo = await host.as()
    const content = { msgtype: 'm.notice', body: `echo: ${event.content.body}` }
    // Named after the event, so that it is sent once even when the events come again after a crash.
    await echo.send(event.room_id, 'm.room.message', content, event.event_id)
  }

  return {
    async events(events) {
      for (const event of events) {
        // A room that we may not speak in must not keep the events of others back.
        await answer(event).catch((error) => {
          if (error.errcode === undefined || error.status >= 500) throw error
        })
      }
    },

    async findUser(userId) {
      if (!isForUs(userId)) return false
      await host.as(userId.slice(1).split(':')[0])
      return true
    },

    async findAlias(alias) {
      const echo = await host.as()
      await echo.createRoom({ preset: 'public_chat', room_alias_name: alias.slice(1).split(':')[0] })
      return true
    },

    async protocol(name) {
      if (name !== 'echo') return undefined
      return {
        user_fields: ['name'],
        location_fields: [],
        icon: 'mxc://example.org/echo',
        field_types: { name: { regexp: '[a-z]+', placeholder: 'name' } },
        instances: [{ desc: 'Echo', network_id: 'echo', fields: {} }],
      }
    },
  }
}
