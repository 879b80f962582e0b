//! Shared types.
