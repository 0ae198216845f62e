"""What every HTTP listener of Postroom shares: limits on connections and requests, and a bind that is judged first."""
