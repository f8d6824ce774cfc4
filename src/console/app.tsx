import type { ComponentChildren } from 'preact'
import { useEffect, useErrorBoundary } from 'preact/hooks'
import { Acts } from './pages/acts.tsx'
import { Backups } from './pages/backups.tsx'
import { Bindings } from './pages/bindings.tsx'
import { Bridges } from './pages/bridges.tsx'
import { Configuration } from './pages/configuration.tsx'
import { Federation } from './pages/federation.tsx'
import { Media } from './pages/media.tsx'
import { Overview } from './pages/overview.tsx'
import { PolicyLists } from './pages/policy-lists.tsx'
import { Reports } from './pages/reports.tsx'
import { RoomPage } from './pages/room.tsx'
import { Rooms } from './pages/rooms.tsx'
import { Tokens } from './pages/tokens.tsx'
import { UserPage } from './pages/user.tsx'
import { Users } from './pages/users.tsx'
import { Wave } from './pages/wave.tsx'
import { ActingProvider } from './parts/acting.tsx'
import { Page } from './parts/page.tsx'
import { type Place, to, usePlace } from './router.ts'
import { Shell } from './shell.tsx'
import { rich, t } from './words.ts'

export function App() {
  return (
    <ActingProvider>
      <Shell>
        <Routed />
      </Shell>
    </ActingProvider>
  )
}

/** What breaks a page leaves the menu as it is, and the next page is whole. */
function Routed() {
  const place = usePlace()
  const [broken, mend] = useErrorBoundary()
  useEffect(() => {
    if (broken !== undefined) mend()
  }, [place])
  if (broken === undefined) return <>{pageAt(place)}</>
  return (
    <Page title={t('Something went wrong in this page.')}>
      <p>
        <button type="button" class="quiet" onClick={mend}>
          {t('Try again')}
        </button>
      </p>
    </Page>
  )
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
    case 'reports':
      return <Reports query={query} />
    case 'wave':
      return <Wave />
    case 'lists':
      return <PolicyLists />
    case 'media':
      return <Media query={query} />
    case 'federation':
      return <Federation query={query} />
    case 'tokens':
      return <Tokens />
    case 'bridges':
      return <Bridges />
    case 'bindings':
      return <Bindings query={query} />
    case 'backups':
      return <Backups />
    case 'configuration':
      return <Configuration query={query} />
    case 'acts':
      return <Acts query={query} />
    default:
      return (
        <Page title={t('Nothing is here')}>
          <p>{rich('This address leads nowhere. {link}', { link: <a href={to([])}>{t('Go to the overview.')}</a> })}</p>
        </Page>
      )
  }
}
