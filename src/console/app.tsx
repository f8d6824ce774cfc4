import type { ComponentChildren } from 'preact'
import { Overview } from './pages/overview.tsx'
import { RoomPage } from './pages/room.tsx'
import { Rooms } from './pages/rooms.tsx'
import { UserPage } from './pages/user.tsx'
import { Users } from './pages/users.tsx'
import { ActingProvider } from './parts/acting.tsx'
import { Page } from './parts/page.tsx'
import { type Place, to, usePlace } from './router.ts'
import { Shell } from './shell.tsx'

export function App() {
  return (
    <ActingProvider>
      <Shell>
        <Routed />
      </Shell>
    </ActingProvider>
  )
}

function Routed() {
  return <>{pageAt(usePlace())}</>
}

function pageAt({ parts, query }: Place): ComponentChildren {
  const [section = '', id] = parts
  switch (section) {
    case '':
      return <Overview />
    case 'users':
      return id === undefined ? <Users query={query} /> : <UserPage key={id} userId={id} tab={query.tab ?? ''} />
    case 'rooms':
      return id === undefined ? <Rooms query={query} /> : <RoomPage key={id} roomId={id} tab={query.tab ?? ''} />
    default:
      return (
        <Page title="Nothing is here">
          <p>
            This address leads nowhere. <a href={to([])}>Go to the overview.</a>
          </p>
        </Page>
      )
  }
}
